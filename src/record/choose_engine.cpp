#include "record/choose_engine.hpp"

#include "base/format.hpp"
#include "bpf/sampler.hpp"
#include "record/bpf_engine.hpp"
#include "record/engine_preference.hpp"
#include "record/interruption.hpp"
#include "record/recording.hpp"
#include "record/stack_sampler.hpp"
#include "record/trampoline_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace pyinject::record {

namespace {

constexpr auto kEngines = std::to_array<EngineName>(
    {{.name = "trampoline", .choice = EngineChoice::kTrampoline, .built_in = [] { return true; }},
     {.name = "bpf",
      .choice = EngineChoice::kBpf,
      .built_in = bpf::built_in,
      .needs = "libbpf",
      .knows_gil_and_tasks = true},
     {.name = "auto", .choice = EngineChoice::kAuto, .knows_gil_and_tasks = true}});

// For messages.
std::string name_for_messages(const RecordPlan& plan) {
  if (!plan.engine_setting.empty()) {
    return plan.engine_setting;
  }
  if (plan.engine_is_open) {
    return "BPF";
  }
  return fmt::format("--engine {}",
                     std::ranges::find(kEngines, plan.engine, &EngineName::choice)->name);
}

// Why the output cannot be post-processed; empty: it can be.
std::string why_unprocessed(const RecordPlan& plan) {
  if (plan.perf_options->output.pipe) {
    return "to a pipe";
  }
  return plan.perf_options->kcore ? "the kernel's code, too (--kcore)" : "";
}

// False: refused.
bool check_output(const RecordPlan& plan, const std::string& where, base::Logger& logger) {
  const auto why =
      fmt::format("perf's output in a file, but perf writes {}: {}", where,
                  plan.perf_options->output.pipe ? "name a file with -o" : "omit --kcore");
  if (plan.whole_system() && plan.scope().chosen_from_file()) {
    logger.error("-u and --comm need {}", why);
  } else if (plan.flags.off_cpu) {
    logger.error("--off-cpu needs {}", why);
  } else if (!plan.flags.timed_calls.empty() || !plan.flags.memory_calls.empty()) {
    logger.error("--what needs {}", why);
  } else if (plan.engine == EngineChoice::kBpf) {
    logger.error("{} needs {}, or use --engine trampoline", name_for_messages(plan), why);
  } else {
    return true;
  }
  return false;
}

// Whether the trampoline, with copied stacks, may replace the engine that is unusable because of
// WHY.
bool fall_back(const RecordPlan& plan, const std::string& why, base::Logger& logger) {
  if (plan.engine == EngineChoice::kAuto) {
    std::string without = plan.flags.gil ? ", without --gil" : "";
    if (plan.flags.tasks) {
      without += plan.flags.gil ? " and --tasks" : ", without --tasks";
    }
    // A default is not a request for this recording.
    logger.log(plan.engine_setting.empty() ? base::LogLevel::kWarning : base::LogLevel::kInfo,
               fmt::format("{}: {}; the trampoline is used instead{}", name_for_messages(plan), why,
                           without));
    return true;
  }
  if (plan.engine == EngineChoice::kTrampoline) {
    logger.warning("{}; perf copies the stacks instead", why);
    return true;
  }
  logger.error("{}: {}; or use --engine trampoline", name_for_messages(plan), why);
  return false;
}

// nullopt: this tool failed, which was logged.
std::optional<int> run(Recording& recording, base::Logger& logger) {
  try {
    return recording.run();
  } catch (const std::exception& error) {
    logger.error("{}", error.what());
    return std::nullopt;
  }
}

// nullopt: this engine is unusable, nothing was recorded, and the other engine may be tried.
std::optional<RecordResult> try_engine(const RecordPlan& plan, std::unique_ptr<Engine> engine,
                                       base::Logger& logger, targets::StopRequests& stop) {
  auto& tried = *engine;
  Recording recording{plan, std::move(engine), logger, stop};
  const auto status = run(recording, logger);
  auto result = recording.result(status.value_or(kFailure));
  const auto why = status ? tried.why_replaceable() : std::string{};
  const bool failed = !why.empty() && result.signal == 0;
  if (!failed || plan.engine != EngineChoice::kAuto) {
    tried.release_events();
  }
  if (failed && fall_back(plan, why, logger)) {
    return std::nullopt;
  }
  if (!why.empty()) {
    result.status = failed ? kFailure : 128 + result.signal;
  }
  return result;
}

// GIVEN with the engine that suits the targets, if the user has chosen none.
RecordPlan decided(const RecordPlan& given, python::Detector& detector, base::Logger& logger,
                   targets::StopRequests& stop) {
  RecordPlan plan = given;
  const bool open = plan.engine_is_open && plan.engine == EngineChoice::kTrampoline &&
                    plan.backfill && why_unprocessed(plan).empty();
  if (!open) {
    return plan;
  }
  std::string why;
  {
    const Interruption interruption{stop, plan.duration.has_value()};
    why = why_bpf(plan, detector, interruption.cancellation());
  }
  const bool available = !why.empty() && std::holds_alternative<std::unique_ptr<StackSampler>>(
                                             StackSampler::open({}, false, logger));
  if (available) {
    plan.engine = EngineChoice::kAuto;
    logger.log(
        plan.told_engine ? base::LogLevel::kDebug : base::LogLevel::kInfo,
        fmt::format("{}; recording with --engine bpf instead (--engine trampoline insists)", why));
  }
  return plan;
}

}  // namespace

std::span<const EngineName> engine_names() { return kEngines; }

namespace {

// PLAN: with its engine.
RecordResult record_decided(const RecordPlan& plan, python::Detector& detector,
                            python::Injector& injector, base::Logger& logger,
                            RecordObserver& observer, targets::StopRequests& stop) {
  const auto where = why_unprocessed(plan);
  if (!where.empty() && !check_output(plan, where, logger)) {
    return {};
  }
  const auto trampoline = [&](Unwinding unwinding) {
    return std::make_unique<TrampolineEngine>(plan, detector, injector, logger, observer,
                                              unwinding);
  };
  const auto with_copies = [&] { return trampoline(Unwinding::kAfterwards); };
  if (plan.engine == EngineChoice::kTrampoline) {
    return record_with(
        plan, [&] { return trampoline(Unwinding::kAtSamples); }, with_copies, logger, stop);
  }
  if (!where.empty() && !plan.engine_setting.empty()) {  // auto, by default: no message
    return record_with(plan, {}, with_copies, logger, stop);
  }
  return record_with(
      plan,
      [&]() -> std::variant<std::unique_ptr<Engine>, std::string> {
        if (!where.empty()) {
          return "perf writes " + where;
        }
        auto opened = StackSampler::open(plan.flags, !plan.perf_options->call_graph, logger);
        if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
          return phrase(*why);
        }
        return std::make_unique<BpfEngine>(
            plan, std::get<std::unique_ptr<StackSampler>>(std::move(opened)), logger, observer);
      },
      with_copies, logger, stop);
}

}  // namespace

RecordResult record(const RecordPlan& plan, python::Detector& detector, python::Injector& injector,
                    base::Logger& logger, RecordObserver& observer,
                    targets::StopRequests& stop) try {
  return record_decided(decided(plan, detector, logger, stop), detector, injector, logger, observer,
                        stop);
} catch (const std::exception& error) {  // before a recording has begun
  logger.error("{}", error.what());
  return {};
}

RecordResult record_with(const RecordPlan& plan, const OpenEngine& preferred,
                         const std::function<std::unique_ptr<Engine>()>& other,
                         base::Logger& logger, targets::StopRequests& stop) {
  if (preferred) {
    auto opened = preferred();
    if (auto* const engine = std::get_if<std::unique_ptr<Engine>>(&opened)) {
      if (auto result = try_engine(plan, std::move(*engine), logger, stop)) {
        return std::move(*result);
      }
    } else if (!fall_back(plan, std::get<std::string>(opened), logger)) {
      return {};
    }
  }
  Recording recording{plan, other(), logger, stop};
  const auto status = run(recording, logger);
  return recording.result(status.value_or(kFailure));
}

}  // namespace pyinject::record
