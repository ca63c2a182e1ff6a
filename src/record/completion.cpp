#include "record/completion.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/status.hpp"
#include "procfs/target_root.hpp"
#include "pyinject/base/directory.hpp"
#include "pyinject/base/error.hpp"
#include "record/call_graph.hpp"
#include "record/kept_images.hpp"
#include "targets/target_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <variant>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::record {

namespace {

namespace filesystem = std::filesystem;

// The directory next to the file, which the file names as the location of its images.
std::string folder_of_images(const std::string& output) {
  std::error_code ignored;
  return filesystem::absolute(output, ignored).string() + ".names";
}

std::string path_of_image(const std::string& folder, std::uint32_t pid) {
  return pid == 0 ? folder + "/python" : fmt::format("{}/python-{}", folder, pid);
}

}  // namespace

Processed Completion::write(const std::string& input, const std::string& output,
                            const CompletionOptions& options, weave::WeaveSummary& summary) {
  const auto folder = folder_of_images(output);
  const weave::WeaveOptions weaving{
      .input = input,
      .output = output,
      .recorded = options.recorded,
      .unfinished = options.unfinished,
      .flags = options.flags,
      .followed = options.followed,
      .begun_at = options.begun_at,
      .ended_at = options.ended_at,
      .gaps = options.gaps,
      .most_entries = most_callchain_entries(),
      .image_path = [&](std::uint32_t pid) { return path_of_image(folder, pid); },
      .progress =
          [&](double done, std::uint64_t samples) {
            observer_.post_processing(done, samples);
            return !options.interrupted || !options.interrupted();
          },
      .keep =
          [&](const std::vector<weave::NamedImage>& images,
              const std::vector<weave::ReplacedFile>& replaced, const struct stat& like) {
            observer_.stopped();
            keep_images({.images = images,
                         .folder = folder,
                         .beside = options.names_beside,
                         .perf = options.perf,
                         .like = like},
                        logger_);
            keep_replaced(replaced, options.names_beside ? "" : options.perf, like, logger_);
            base::reached(base::Step::kWoven);
          }};
  const auto lost = options.lost.empty() ? std::string{} : "; the " + options.lost + " are lost";
  try {
    base::reached(base::Step::kWeaveBegun);
    auto result = weave::weave(weaving, options.context, files_);
    observer_.stopped();
    if (const auto* const untouched = std::get_if<weave::Untouched>(&result)) {
      if (untouched->cancelled) {
        logger_.warning("{}: left unprocessed: post-processing was cancelled{}",
                        base::printable(input), lost);
        return Processed::kCancelled;
      }
      logger_.log(
          lost.empty() ? base::LogLevel::kWarning : base::LogLevel::kError,
          fmt::format("{}: left unprocessed: {}{}", base::printable(input), untouched->why,
                      lost.empty() && options.recorded
                          ? "; its stacks lack the functions that were entered before the attach"
                          : lost));
      return Processed::kLeftAlone;
    }
    summary = std::get<weave::WeaveSummary>(std::move(result));
    if (summary.images_left_out != 0) {
      logger_.warning(
          "{}: it has too many names to hold them itself: to read it elsewhere, pack them with "
          "perf "
          "archive",
          base::printable(output));
    }
    if (!summary.left_over.empty()) {
      logger_.warning("{}: perf's directory is left over: {}", base::printable(output),
                      base::printable(summary.left_over));
    }
    logger_.debug(
        "{}: {} unwound, {} of them in part by frame pointers; functions entered before the attach "
        "were added to {}",
        base::printable(output), base::counted(summary.unwound, "stack"), summary.by_frame_pointer,
        base::counted(summary.extended, "stack"));
    return Processed::kDone;
  } catch (const base::Error& error) {
    observer_.stopped();
    logger_.error("{}: left unprocessed: {}{}", base::printable(input), error.what(), lost);
    return Processed::kFailed;
  }
}

Processed Completion::replace(const std::string& path, const CompletionOptions& options,
                              weave::WeaveSummary& summary) {
  if (!options.flags.keep_raw) {
    return write(path, path, options, summary);
  }
  const auto place = base::Place::of(path);
  const auto raw = place.name + ".raw";
  const auto is_directory = [](const std::string& name) {  // of --threads
    std::error_code ignored;
    return filesystem::is_directory(filesystem::symlink_status(name, ignored));
  };
  if (is_directory(path) || is_directory(path + ".raw")) {  // one cannot be renamed to the other
    place.directory.remove_with_files(raw);
  }
  place.directory.rename(place.name, raw);
  const auto processed = write(path + ".raw", path, options, summary);
  if (processed != Processed::kDone) {
    place.directory.rename(raw, place.name);
  }
  return processed;
}

void warn_without_off_cpu(const std::vector<WovenFile>& woven, base::Logger& logger) {
  std::uint64_t unknown = 0;
  for (const auto& each : woven) {
    unknown += each.summary.waits_unknown;
  }
  if (unknown != 0) {
    logger.warning(
        "--off-cpu: waits of {} that began before the recording are missing: the recording does "
        "not "
        "show when they ended",
        base::counted(unknown, "thread"));
  }
  const auto file = std::ranges::find_if(
      woven, [](const auto& each) { return each.summary.no_off_cpu != weave::NoOffCpu::kNone; });
  if (file == woven.end()) {
    return;
  }
  if (file->summary.no_off_cpu == weave::NoOffCpu::kNoSwitches) {
    logger.warning(
        "--off-cpu: {} has no records of context switches: the lengths of the waits are unknown",
        base::printable(file->path));
  } else {
    logger.warning(
        "--off-cpu: {} has no waits{}: perf was allowed to record user space only "
        "(kernel.perf_event_paranoid); run as root, grant CAP_PERFMON, or set it to 1",
        base::printable(file->path),
        file->summary.waits != 0 ? " but those that began before the recording" : "");
  }
}

}  // namespace pyinject::record
