#include "pyinject/record/weave_file.hpp"

#include "pyinject/base/deadline.hpp"
#include "pyinject/record/options.hpp"
#include "record/completion.hpp"
#include "targets/target_map.hpp"

namespace pyinject::record {

int weave_file(const WeaveFileOptions& options, base::Logger& logger, RecordObserver& observer) {
  const auto perf = perf::locate_perf(options.perf, base::Deadline::after(kPerfAnswers));
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
