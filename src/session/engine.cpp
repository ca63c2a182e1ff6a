#include "session/engine.hpp"

#include "base/format.hpp"
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

// What perf writes to a pipe is left as it is.
constexpr const char* kPipe =
    "puts something into perf's file when that is complete, which a pipe is not: name one with -o";

// False: refused.
bool fits_pipe(const RecordOptions& options, base::Logger& logger) {
  if (options.all && options.scope.chosen_from_file()) {
    logger.error("-u and --comm choose from the recorded file: not with -o -");
  } else if (options.off_cpu) {
    logger.error("--off-cpu {}", kPipe);
  } else if (options.engine == Engine::kBpf) {
    logger.error("--engine bpf {}; or use --engine trampoline", kPipe);
  } else {
    return true;
  }
  return false;
}

// Whether the trampoline is used where the other engine cannot be, for the reason WHY.
bool may_change(const RecordOptions& options, const std::string& why, base::Logger& logger) {
  if (options.engine == Engine::kAuto) {
    logger.warning("--engine auto: {}; the trampoline is used instead", why);
    return true;
  }
  logger.error("--engine bpf: {}; or use --engine trampoline", why);
  return false;
}

std::string phrase(const bpf::Unavailable& why) {
  return fmt::format("{} ({}): {}", why.found, why.name, why.remedy);
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
  const bool pipe = output_of(options).pipe;
  if (pipe && !fits_pipe(options, logger)) {
    return kFailure;
  }
  if (pipe && options.engine == Engine::kAuto) {
    (void)may_change(options, "perf writes to a pipe", logger);
  } else if (options.engine != Engine::kTrampoline) {
    if (const auto status = record_by_bpf(options, logger, observer, signal)) {
      return *status;
    }
  }
  Recorder recorder{options, detector, injector, nullptr, logger, observer};
  return record_by(recorder, signal);
}

}  // namespace pyinject::session
