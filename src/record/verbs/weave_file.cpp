#include "pyinject/record/weave_file.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "perfdata/input.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/record/plan.hpp"
#include "record/completion.hpp"
#include "record/kept_images.hpp"
#include "targets/target_map.hpp"
#include "weave/own_files.hpp"

#include <cerrno>
#include <variant>
#include <vector>

#include <sys/stat.h>

namespace pyinject::record {

namespace {

int give_names(const WeaveFileOptions& options, const std::string& perf, base::Logger& logger) {
  auto opened = perfdata::Input::open(options.input);
  const auto name = base::printable(options.input);
  if (const auto* const unsupported = std::get_if<perfdata::UnsupportedFile>(&opened)) {
    logger.error("{}: {}", name, unsupported->why);
    return kFailure;
  }
  std::vector<weave::NamedImage> images;
  const weave::OwnFiles files{std::get<perfdata::Input>(opened)};
  for (const auto& [id, bytes] : files.images()) {
    images.push_back({.path = id, .image = {.bytes = bytes, .build_id = {}}});
  }
  if (images.empty()) {
    logger.error("{}: no names are in it: an earlier version recorded it, or it has none", name);
    return kFailure;
  }
  struct stat like {};
  if (::stat(options.input.c_str(), &like) != 0) {
    throw base::SystemError{"cannot inspect " + name, errno};
  }
  const auto problem = put_into_cache({.images = images, .folder = {}, .perf = perf, .like = like});
  if (problem) {
    logger.error("{}: {}", name, *problem);
    return kFailure;
  }
  logger.info("{}: its names are in perf's build-id cache: perf report -i {}", name, name);
  return 0;
}

}  // namespace

int weave_file(const WeaveFileOptions& options, base::Logger& logger, RecordObserver& observer) {
  const auto perf = perf::locate_perf(options.perf, base::Deadline::after(kPerfAnswers));
  if (options.only_names) {
    return give_names(options, perf.path, logger);
  }
  weave::RecordedFiles files;
  WovenFile woven{.path = options.output, .summary = {}};
  CompletionOptions completion;
  completion.flags.python_only = options.python_only;
  completion.perf = perf.path;
  completion.interrupted = options.interrupted;
  completion.context.open_map = targets::open_perf_map;
  const auto processed = Completion{files, logger, observer}.write(options.input, options.output,
                                                                   completion, woven.summary);
  if (processed != Processed::kDone) {
    return kFailure;
  }
  RecordSummary summary;
  summary.output.path = options.output;
  summary.woven.push_back(std::move(woven));
  observer.finished(summary);
  return 0;
}

}  // namespace pyinject::record
