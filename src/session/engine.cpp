#include "session/engine.hpp"

#include "base/format.hpp"
#include "session/recorder.hpp"
#include "session/stack_sampler.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <variant>

namespace pyinject::session {

namespace {

std::string phrase(const bpf::Unavailable& why) {
  return fmt::format("{} ({}): {}", why.found, why.name, why.remedy);
}

}  // namespace

int record_once(const RecordOptions& options, python::Detector& detector,
                python::Injector& injector, base::Logger& logger, RecordObserver& observer,
                int& signal) {
  std::unique_ptr<StackSampler> sampler;
  if (options.engine != Engine::kTrampoline) {
    auto opened = StackSampler::open({.gil = options.gil, .tasks = options.tasks}, logger);
    if (auto* const found = std::get_if<std::unique_ptr<StackSampler>>(&opened)) {
      sampler = std::move(*found);
    } else {
      const auto& why = std::get<bpf::Unavailable>(opened);
      if (options.engine == Engine::kBpf) {
        logger.error("--engine bpf: {}; or use --engine trampoline", phrase(why));
        return kFailure;
      }
      logger.warning("--engine auto: {}; the trampoline is used instead", phrase(why));
    }
  }
  const auto reader = sampler ? python::make_detector(python::Purpose::kObserve) : nullptr;
  Recorder recorder{options,
                    reader ? *reader : detector,
                    sampler ? static_cast<python::Injector&>(*sampler) : injector,
                    sampler.get(),
                    logger,
                    observer};
  try {
    const int status = recorder.run();
    signal = recorder.signal();
    return status;
  } catch (...) {
    signal = recorder.signal();
    throw;
  }
}

}  // namespace pyinject::session
