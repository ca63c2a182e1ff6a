#include "session/post_processing.hpp"

#include "base/format.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/fault.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/procfs/status.hpp"
#include "pyinject/procfs/target_root.hpp"
#include "pyinject/session/call_graph.hpp"
#include "pyinject/weave/build_id_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

constexpr std::chrono::seconds kCacheAnswers{60};

base::UniqueFd open_in(base::Pid whose, const std::string& path) {
  const auto root = procfs::TargetRoot::open(whose);
  return root ? root->open_beneath(path, O_RDONLY) : base::UniqueFd{};
}

// The folder beside the file in which it says that its images are.
std::string folder_of_images(const std::string& output) {
  std::error_code ignored;
  return filesystem::absolute(output, ignored).string() + ".names";
}

std::string path_of_image(const std::string& folder, std::uint32_t pid) {
  return pid == 0 ? folder + "/python" : fmt::format("{}/python-{}", folder, pid);
}

void write_image(const weave::SymbolImage& image, const std::string& path) {
  const base::UniqueFd file{
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644)};
  if (!file.valid()) {
    throw base::SystemError{"cannot create " + path, errno};
  }
  base::write_all(file.get(),
                  {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()}, path);
}

// For the time that perf takes to put its files into the cache.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw base::SystemError{"cannot create a folder like " + path_, errno};
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/perf-pyinject.XXXXXX";
};

// Why not, where it fails.
std::optional<std::string> put_into_cache(const std::vector<weave::NamedImage>& images,
                                          const std::string& perf) {
  const TemporaryFolder folder;
  for (const auto& image : images) {
    const auto path = folder.path() + "/" + filesystem::path{image.path}.filename().string();
    write_image(image.image, path);
    if (auto problem =
            weave::add_to_build_id_cache(perf, path, base::Deadline::after(kCacheAnswers))) {
      return problem;
    }
  }
  return std::nullopt;
}

// In perf's cache; where the file says they are, FOLDER, if they are to be BESIDE it or perf does
// not keep them.
void keep_images(const std::vector<weave::NamedImage>& images, const std::string& folder,
                 bool beside, const std::string& perf, base::Logger& logger) {
  if (images.empty()) {
    return;
  }
  if (!beside) {
    const auto problem = put_into_cache(images, perf);
    if (!problem) {
      return;
    }
    logger.warning("the names are kept in {}, where perf report looks for them: {}",
                   base::printable(folder), *problem);
  }
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    throw base::SystemError{"cannot create " + folder, errno};
  }
  for (const auto& image : images) {
    write_image(image.image, image.path);
  }
}

}  // namespace

base::UniqueFd open_perf_map(std::uint32_t number) {
  const base::Pid pid{static_cast<pid_t>(number)};
  if (const auto status = procfs::read_status(pid); status && !status->namespace_pids.empty()) {
    auto own = open_in(pid, fmt::format("/tmp/perf-{}.map", status->namespace_pids.back()));
    if (own.valid()) {
      return own;
    }
  }
  return open_in(base::Pid{::getpid()}, fmt::format("/tmp/perf-{}.map", number));
}

Processed post_process(const PostProcessing& work, weave::RecordedFiles& files,
                       base::Logger& logger, RecordObserver* observer,
                       weave::WeaveSummary& summary) {
  const auto folder = folder_of_images(work.output);
  const weave::WeaveOptions options{
      .input = work.input,
      .output = work.output,
      .unfinished = work.unfinished,
      .lines = work.lines,
      .gil = work.gil,
      .tasks = work.tasks,
      .off_cpu = work.off_cpu,
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
          [&](const std::vector<weave::NamedImage>& images) {
            if (observer != nullptr) {
              observer->stopped();
            }
            keep_images(images, folder, work.names_beside, work.perf, logger);
            base::reached(base::Step::kWoven);
          }};
  const auto lost = work.lost.empty() ? std::string{} : "; the " + work.lost + " are lost";
  try {
    base::reached(base::Step::kWeaveBegun);
    auto result = weave::weave(options, work.knowledge, files);
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
    return Processed::kLeftAlone;
  }
}

Processed post_process_in_place(const std::string& path, bool keep_raw, PostProcessing work,
                                weave::RecordedFiles& files, base::Logger& logger,
                                RecordObserver* observer, weave::WeaveSummary& summary) {
  work.input = keep_raw ? path + ".raw" : path;
  work.output = path;
  if (keep_raw && std::rename(path.c_str(), work.input.c_str()) != 0) {
    throw base::SystemError{"cannot rename " + path + " to " + work.input, errno};
  }
  const auto processed = post_process(work, files, logger, observer, summary);
  if (processed != Processed::kDone && keep_raw) {
    (void)std::rename(work.input.c_str(), path.c_str());
  }
  return processed;
}

void warn_without_off_cpu(const std::vector<WovenFile>& woven, base::Logger& logger) {
  const auto file = std::ranges::find_if(
      woven, [](const auto& each) { return each.summary.no_off_cpu != weave::NoOffCpu::kNone; });
  if (file == woven.end()) {
    return;
  }
  if (file->summary.no_off_cpu == weave::NoOffCpu::kNoSwitches) {
    logger.warning("--off-cpu: {} has no records of switches: for how long is not known",
                   base::printable(file->path));
  } else {
    logger.warning(
        "--off-cpu: {} has no waits: perf was allowed to record user space only "
        "(kernel.perf_event_paranoid); run as root, grant CAP_PERFMON, or set it to 1",
        base::printable(file->path));
  }
}

}  // namespace pyinject::session
