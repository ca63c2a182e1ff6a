#include "record/post_processing.hpp"

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

namespace pyinject::session {

namespace {

namespace filesystem = std::filesystem;

// The directory next to the file, by which the file names its images.
std::string folder_of_images(const std::string& output) {
  std::error_code ignored;
  return filesystem::absolute(output, ignored).string() + ".names";
}

std::string path_of_image(const std::string& folder, std::uint32_t pid) {
  return pid == 0 ? folder + "/python" : fmt::format("{}/python-{}", folder, pid);
}

}  // namespace

Processed post_process(const PostProcessing& work, weave::RecordedFiles& files,
                       base::Logger& logger, RecordObserver* observer,
                       weave::WeaveSummary& summary) {
  const auto folder = folder_of_images(work.output);
  const weave::WeaveOptions options{
      .input = work.input,
      .output = work.output,
      .recorded = work.recorded,
      .unfinished = work.unfinished,
      .flags = work.flags,
      .followed = work.followed,
      .begun_at = work.begun_at,
      .ended_at = work.ended_at,
      .most_entries = most_callchain_entries(),
      .image_path = [&](std::uint32_t pid) { return path_of_image(folder, pid); },
      .progress =
          [&](double done, std::uint64_t samples) {
            if (observer != nullptr) {
              observer->post_processing(done, samples);
            }
            return !work.interrupted || !work.interrupted();
          },
      .keep =
          [&](const std::vector<weave::NamedImage>& images, const struct stat& input) {
            if (observer != nullptr) {
              observer->stopped();
            }
            keep_images({.images = images,
                         .folder = folder,
                         .beside = work.names_beside,
                         .perf = work.perf,
                         .like = input},
                        logger);
            base::reached(base::Step::kWoven);
          }};
  const auto lost = work.lost.empty() ? std::string{} : "; the " + work.lost + " are lost";
  try {
    base::reached(base::Step::kWeaveBegun);
    auto result = weave::weave(options, work.context, files);
    if (observer != nullptr) {
      observer->stopped();
    }
    if (const auto* const untouched = std::get_if<weave::Untouched>(&result)) {
      if (untouched->cancelled) {
        logger.warning("post-processing was cancelled: {} is as perf wrote it{}", work.input, lost);
        return Processed::kCancelled;
      }
      logger.log(lost.empty() ? base::LogLevel::kWarning : base::LogLevel::kError,
                 fmt::format("{} is left as perf wrote it: {}{}", base::printable(work.input),
                             untouched->why, lost));
      return Processed::kLeftAlone;
    }
    summary = std::get<weave::WeaveSummary>(std::move(result));
    logger.debug(
        "{}: {} stacks unwound, {} of them in part by frame pointers; {} got functions "
        "that were entered before",
        base::printable(work.output), summary.unwound, summary.by_frame_pointer, summary.extended);
    return Processed::kDone;
  } catch (const base::Error& error) {
    if (observer != nullptr) {
      observer->stopped();
    }
    logger.error("{}: {} is as perf wrote it{}", error.what(), base::printable(work.input), lost);
    return Processed::kFailed;
  }
}

Processed post_process_in_place(const std::string& path, PostProcessing work,
                                weave::RecordedFiles& files, base::Logger& logger,
                                RecordObserver* observer, weave::WeaveSummary& summary) {
  work.input = work.flags.keep_raw ? path + ".raw" : path;
  work.output = path;
  if (!work.flags.keep_raw) {
    return post_process(work, files, logger, observer, summary);
  }
  const auto place = base::Place::of(path);
  const auto raw = place.name + ".raw";
  place.directory.rename(place.name, raw);
  const auto processed = post_process(work, files, logger, observer, summary);
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
        "--off-cpu: {} threads waited when the recording began, with an unknown end: these waits "
        "are missing",
        unknown);
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

}  // namespace pyinject::session
