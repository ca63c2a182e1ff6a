#include "session/engine.hpp"

#include "base/format.hpp"
#include "pyinject/perf/record_options.hpp"
#include "session/recorder.hpp"
#include "session/stack_sampler.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace pyinject::session {

namespace {

// What perf writes so is left as it is. Empty: it writes files.
std::string left_alone(const RecordOptions& options) {
  if (output_of(options).pipe) {
    return "to a pipe";
  }
  return perf::writes_folder(options.perf_options) ? "into a folder (--threads)" : "";
}

// False: refused.
bool fits(const RecordOptions& options, const std::string& where, base::Logger& logger) {
  const auto why =
      fmt::format("puts something into perf's file when that is complete, and perf writes {}: {}",
                  where, output_of(options).pipe ? "name a file with -o" : "leave out --threads");
  if (options.all && options.scope.chosen_from_file()) {
    logger.error("-u and --comm choose from the recorded file, and perf writes {}", where);
  } else if (options.off_cpu) {
    logger.error("--off-cpu {}", why);
  } else if (options.engine == Engine::kBpf) {
    logger.error("--engine bpf {}; or use --engine trampoline", why);
  } else {
    return true;
  }
  return false;
}

// Whether the trampoline is used where the other engine cannot be, for the reason WHY.
bool may_change(const RecordOptions& options, const std::string& why, base::Logger& logger) {
  if (options.engine == Engine::kAuto) {
    std::string without = options.gil ? ", without --gil" : "";
    if (options.tasks) {
      without += options.gil ? " and --tasks" : ", without --tasks";
    }
    logger.warning("--engine auto: {}; the trampoline is used instead{}", why, without);
    return true;
  }
  logger.error("--engine bpf: {}; or use --engine trampoline", why);
  return false;
}

int record_by(Recorder& recorder, int& signal) {
  try {
    const int status = recorder.run();
    signal = recorder.signal();
    return status;
  } catch (...) {
    signal = recorder.signal();
    throw;
  }
}

// nullopt: it cannot be done by this engine, nothing was recorded, and another one may be used.
std::optional<int> record_by_bpf(const RecordOptions& options, base::Logger& logger,
                                 RecordObserver& observer, int& signal) {
  const auto refused = [&](const std::string& why) {
    return may_change(options, why, logger) ? std::nullopt : std::optional{kFailure};
  };
  auto opened = StackSampler::open({.gil = options.gil, .tasks = options.tasks}, logger);
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    return refused(phrase(*why));
  }
  auto& sampler = *std::get<std::unique_ptr<StackSampler>>(opened);
  const auto detector = python::make_detector(python::Purpose::kObserve);
  Recorder recorder{options, *detector, sampler, &sampler, logger, observer};
  const int status = record_by(recorder, signal);
  if (sampler.why_not_attached().empty()) {
    return status;
  }
  return signal != 0 ? 128 + signal
                     : refused("the program cannot be attached to perf's events: " +
                               sampler.why_not_attached());
}

}  // namespace

int record_once(const RecordOptions& options, python::Detector& detector,
                python::Injector& injector, base::Logger& logger, RecordObserver& observer,
                int& signal) {
  const auto where = left_alone(options);
  if (!where.empty() && !fits(options, where, logger)) {
    return kFailure;
  }
  if (!where.empty() && options.engine == Engine::kAuto) {
    (void)may_change(options, "perf writes " + where, logger);
  } else if (options.engine != Engine::kTrampoline) {
    if (const auto status = record_by_bpf(options, logger, observer, signal)) {
      return *status;
    }
  }
  Recorder recorder{options, detector, injector, nullptr, logger, observer};
  return record_by(recorder, signal);
}

}  // namespace pyinject::session
