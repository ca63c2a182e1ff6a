#include "record/trampoline_engine.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "pyinject/targets/this_session.hpp"
#include "python/layout/map_writer.hpp"
#include "record/recording.hpp"
#include "record/recording_clock.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace pyinject::record {

namespace {

using python::Reason;

constexpr const char* kVariable = "PYTHONPERFSUPPORT";
constexpr const char* kJitVariable = "PYTHON_PERF_JIT_SUPPORT";  // 3.13 and later; takes precedence

// With these a trampoline that is on from the start may crash the program.
bool does_harm(Reason reason) {
  return reason == Reason::kBadPatchRelease || reason == Reason::kFreeThreaded ||
         reason == Reason::kBrokenTrampoline;
}

}  // namespace

TrampolineEngine::TrampolineEngine(const RecordPlan& plan, python::Detector& detector,
                                   python::Injector& injector, base::Logger& logger,
                                   RecordObserver& observer, Unwinding unwinding)
    : plan_{plan},
      detector_{detector},
      injector_{injector},
      logger_{logger},
      observer_{observer},
      children_{detector, logger, targets::this_session().session},
      frames_{logger, recording_clock(*plan.perf_options)},
      unwinding_{plan, injector, logger, unwinding} {}

void TrampolineEngine::begin() {
  guard_ = std::make_unique<targets::Guard>(
      detector_, injector_, logger_,
      targets::GuardOptions{.session = targets::this_session().session, .maps = plan_.maps});
  injector_.prepare();
}

// The environment switches the trampoline on in everything that the command starts.
std::map<std::string, std::string> TrampolineEngine::environment_of_command() {
  std::map<std::string, std::string> environment;
  const char* const path = std::getenv("PATH");
  interpreter_ = find_command_interpreter(plan_.command, path == nullptr ? "/bin:/usr/bin" : path);
  const char* const value = std::getenv(kVariable);
  const bool chosen = value != nullptr && *value != '\0';
  const auto number = chosen ? base::parse_number<int>(value) : std::optional{1};
  const auto refusal = interpreter_ ? interpreter_->file.refusal : std::nullopt;
  if (refusal) {
    logger_.warning("{}: {}; recording it without the names of its Python functions",
                    base::printable(interpreter_->name), python::describe(*refusal));
  }
  asked_by_environment_ = number && *number != 0;
  if (!asked_by_environment_) {
    logger_.warning("{}={} is set: the trampoline stays off, Python functions have no names",
                    kVariable, base::printable(value));
  } else if (!chosen && !(refusal && does_harm(refusal->reason))) {
    environment.emplace(kVariable, "1");
  }
  if (const char* const jit = std::getenv(kJitVariable); jit != nullptr && *jit != '\0') {
    logger_.warning(
        "{}={} is set: names are in /tmp/jit-PID.dump, for perf inject --jit, and not in the file",
        kJitVariable, base::printable(jit));
  }
  return environment;
}

void TrampolineEngine::command_held(base::Pid command) {
  // CPython appends to the map: names left by an earlier process with this pid would be used for
  // this one.
  const auto map = fmt::format("/tmp/perf-{}.map", command.value());
  (void)std::rename(map.c_str(), (map + ".old").c_str());
  if (asked_by_environment_) {
    launched_ = std::make_unique<LaunchedProcesses>(detector_, logger_, command);
    if (const auto refusal = interpreter_ ? interpreter_->file.refusal : std::nullopt) {
      launched_->mark_reported(refusal->reason, interpreter_->file.version);
    }
  }
}

CallGraphChoice TrampolineEngine::choose_call_graph(const std::vector<python::Target>& targets,
                                                    const CallGraphWishes& wishes,
                                                    const base::Cancellation& interrupted) {
  if (plan_.launches()) {
    if (launched_ && interpreter_ && interpreter_->file.frame_pointers && !wishes.chosen) {
      launched_->follows_frame_pointers();
    }
    return unwinding_.choose_for_command(interpreter_, wishes);
  }
  if (guard_ && !targets.empty()) {
    guard_->expect_stops();
  }
  return unwinding_.choose(targets, wishes, interrupted);
}

Engine::Attached TrampolineEngine::attach(PerfRun& perf, const targets::Manager& /*manager*/) {
  auto* const program = unwinding_.program();
  if (program == nullptr) {
    return Attached::kYes;
  }
  switch (program->attach(perf)) {
    case StackSampler::Attached::kYes:
      program->start();
      return Attached::kYes;
    case StackSampler::Attached::kNone:
      return Attached::kFailed;
    case StackSampler::Attached::kEnded:
      return Attached::kPerfEnded;
  }
  return Attached::kFailed;
}

std::string TrampolineEngine::why_replaceable() const {
  const auto* const program = unwinding_.program();
  return program == nullptr || program->why_not_attached().empty()
             ? std::string{}
             : "the BPF program that unwinds stacks cannot be attached to perf's events: " +
                   program->why_not_attached();
}

void TrampolineEngine::events_disabled() {
  frames_.stop();
  if (auto* const program = unwinding_.program()) {
    program->stop();
  }
}

void TrampolineEngine::before_activation(const python::Target& target) {
  if (guard_) {
    children_.watch(targets::ancestor_now(target.id));
    guard_->watch(target);
  }
}

bool TrampolineEngine::activated(const targets::ActiveTarget& active) {
  if (active.activation.map.valid()) {
    guard_->keep_map(active.target, active.activation.map.get());
  }
  base::reached(base::Step::kActivated);
  if (auto* const program = unwinding_.program()) {
    program->add_native(active.target.id.pid);
  }
  if (plan_.perf_options->event &&
      (plan_.launches() || active.activation.before != python::TrampolineState::kOnByItself)) {
    add_map_writer(active.target);
  }
  if (plan_.launches() && active.activation.before == python::TrampolineState::kOnByItself) {
    frames_.know(active);
    return false;  // on since its first instruction, as intended
  }
  plan_.backfill ? frames_.add(active) : frames_.know(active);
  return true;
}

void TrampolineEngine::add_map_writer(const python::Target& target) {
  weave::MapWriter writer{
      .text = {.begin = target.text_begin.value(), .end = target.text_end.value()},
      .file = target.interpreter.substr(target.interpreter.rfind('/') + 1)};
  for (const auto& range : python::map_writer_ranges(target)) {
    writer.functions.push_back({.begin = range.begin.value(), .end = range.end.value()});
  }
  const std::lock_guard lock{mutex_};
  map_writers_.insert_or_assign(static_cast<std::uint32_t>(target.id.pid.value()),
                                std::move(writer));
}

void TrampolineEngine::on_tick(targets::Manager& manager) {
  if (launched_) {
    launched_->look(manager);
  }
  manager.keep_trampolines();
}

void TrampolineEngine::forget(const targets::ActiveTarget& active) {
  frames_.forget(active.target.id.pid);
  if (guard_) {
    guard_->forget(active.target);
  }
}

void TrampolineEngine::dismiss() {
  if (guard_) {
    guard_->dismiss();
  }
}

void TrampolineEngine::add_to(weave::RecordingContext& context) {
  context.stacks = frames_.history().empty() ? nullptr : &frames_.history();
  context.interpreters = frames_.interpreters();
  context.entry_frames = FrameWatch::entry_frames();
  auto* const program = unwinding_.program();
  context.native = program == nullptr ? nullptr : &program->stacks();
  const std::lock_guard lock{mutex_};
  context.map_writers = map_writers_;
}

void TrampolineEngine::summarize(RecordSummary& summary) {
  const auto effort = frames_.effort();
  logger_.debug(
      "rounds of reading frames: {}, {} us of processor time", effort.rounds,
      std::chrono::duration_cast<std::chrono::microseconds>(effort.processor_time).count());
  summary.unknown_threads = frames_.unknown_threads();
  const auto* const program = unwinding_.program();
  if (const auto lost = program == nullptr ? 0 : program->stats().lost; lost != 0) {
    logger_.warning("{} without callers: the BPF program's buffer was full; a lower -F helps",
                    base::counted(lost, "sample"));
  }
}

}  // namespace pyinject::record
