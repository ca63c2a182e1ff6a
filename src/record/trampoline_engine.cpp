#include "record/trampoline_engine.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/targets/this_session.hpp"
#include "python/layout/map_writer.hpp"
#include "record/extension_modules.hpp"
#include "record/recording.hpp"
#include "record/recording_clock.hpp"
#include "targets/pid_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

namespace pyinject::record {

namespace {

using python::Reason;

constexpr int kLooks = 5;  // reads of each target's Python stacks before the dump size is chosen
constexpr const char* kVariable = "PYTHONPERFSUPPORT";
constexpr const char* kJitVariable = "PYTHON_PERF_JIT_SUPPORT";  // 3.13 and later; takes precedence

// With these a trampoline that is on from the start may crash the program.
bool does_harm(Reason reason) {
  return reason == Reason::kBadPatchRelease || reason == Reason::kFreeThreaded ||
         reason == Reason::kBrokenTrampoline;
}

// A server may be idle at one moment and deep in a request at the next.
void look_at_stacks(const python::Target& target, CallGraphFacts& facts, TrampolineBurden& burden) {
  auto reader = python::StackReader::of(target);
  auto* const stacks = std::get_if<python::StackReader>(&reader);
  for (int look = 0; stacks != nullptr && look < kLooks; ++look) {
    const auto threads = stacks->read();
    burden.python_threads = std::max(burden.python_threads, threads.size());
    for (const auto& stack : threads) {
      facts.python_calls = std::max(facts.python_calls, stack.frames.size());
    }
  }
}

}  // namespace

TrampolineEngine::TrampolineEngine(const RecordPlan& plan, python::Detector& detector,
                                   python::Injector& injector, base::Logger& logger,
                                   RecordObserver& observer, Unwinding unwinding)
    : plan_{plan},
      unwinding_{unwinding},
      detector_{detector},
      injector_{injector},
      logger_{logger},
      observer_{observer},
      children_{detector, logger, targets::this_session().session},
      frames_{logger, recording_clock(*plan.perf_options)},
      other_events_{plan.perf_options->event} {}

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

CallGraphChoice TrampolineEngine::choose_for_command(const CallGraphWishes& wishes) {
  LaunchedFacts facts{.name = base::printable(plan_.command.front())};
  if (interpreter_) {
    facts.name = base::printable(interpreter_->name);
    if (interpreter_->file.version.major != 0) {
      facts.name += fmt::format(" (Python {})", python::to_string(interpreter_->file.version));
    }
    facts.frame_pointers = interpreter_->file.frame_pointers;
  }
  if (launched_ && facts.frame_pointers == std::optional{true} && !wishes.chosen) {
    launched_->follows_frame_pointers();
  }
  auto choice = choose_for_launched(facts, wishes);
  const bool copies = facts.frame_pointers == std::optional{false} && !wishes.chosen;
  if (copies && !interpreter_->file.refusal && would_suggest() && bpf_is_available()) {
    choice.note += "; --engine bpf copies no stacks";
  }
  return choice;
}

bool TrampolineEngine::would_suggest() const {
  return plan_.suggests_engine && unwinding_ == Unwinding::kAtSamples &&
         !plan_.perf_options->output.pipe && !plan_.perf_options->kcore;
}

bool TrampolineEngine::bpf_is_available() {
  return native_ != nullptr || std::holds_alternative<std::unique_ptr<StackSampler>>(
                                   StackSampler::open({}, false, logger_));
}

// False: no engine is suggested.
bool TrampolineEngine::suggest_engine(const std::vector<python::Target>& targets,
                                      std::vector<TrampolineBurden> burdens) {
  if (!would_suggest()) {
    return false;
  }
  if (!plan_.whole_system()) {
    count_forked(targets, burdens);
  }
  const auto suggestion = suggest_bpf(burdens);
  if (suggestion.empty() || !bpf_is_available()) {
    return false;
  }
  logger_.info("{}", suggestion);
  return true;
}

CallGraphChoice TrampolineEngine::choose_call_graph(const std::vector<python::Target>& targets,
                                                    const CallGraphWishes& wishes,
                                                    const base::Cancellation& interrupted) {
  if (plan_.launches()) {
    return choose_for_command(wishes);
  }
  if (targets.empty() && plan_.families()) {
    return open_native(wishes, interrupted)
               ? choose_for_sampled(wishes)
               : choose_for_launched({.name = fmt::format("the next process below {}",
                                                          targets::list_pids(plan_.pids()))},
                                     wishes);
  }
  if (guard_) {
    guard_->expect_stops();
  }
  ExtensionModules extensions;
  std::vector<CallGraphFacts> facts;
  std::vector<TrampolineBurden> burdens;
  for (const auto& target : targets) {
    if (interrupted.stopped()) {
      return {};
    }
    CallGraphFacts one{
        .pid = target.id.pid, .version = target.version, .frame_pointers = target.frame_pointers};
    if (target.frame_pointers) {
      one.extension_without = extensions.without_frame_pointers(target.id.pid).value_or("");
    }
    TrampolineBurden burden{.pid = target.id.pid, .version = target.version};
    look_at_stacks(target, one, burden);
    facts.push_back(one);
    burdens.push_back(burden);
  }
  const auto needed =
      std::ranges::find_if(facts, [&](const auto& one) { return needs_stack_use(one, wishes); });
  // By frame pointers, the C library hides who writes the perf map.
  const bool later =
      facts.empty() && plan_.whole_system();  // Pythons that start during the recording
  const bool native = (needed != facts.end() || (other_events_ && !facts.empty()) || later) &&
                      open_native(wishes, interrupted);
  const bool suggested = suggest_engine(targets, std::move(burdens));
  if (native) {
    auto choice = choose_for_sampled(wishes);
    if (needed != facts.end()) {
      choice.note = why_not_callchains(*needed, wishes) +
                    ": a BPF program unwinds the stacks, and changes nothing";
      if (!suggested && would_suggest()) {
        choice.note += "; with --engine bpf, it reads the Python functions as well";
      }
    }
    return choice;
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (interrupted.stopped()) {
      return {};
    }
    if (needs_stack_use(facts[i], wishes)) {
      const auto use = injector_.stack_use(targets[i], kStackUse);
      if (const auto* bytes = std::get_if<python::StackUse>(&use)) {
        facts[i].stack_bytes = bytes->bytes;
      }
    }
  }
  return record::choose_call_graph(facts, wishes);
}

// False: perf has to copy stacks, as for a launched command: in its first milliseconds, the BPF
// program has no tables of its files yet.
bool TrampolineEngine::open_native(const CallGraphWishes& wishes,
                                   const base::Cancellation& interrupted) {
  if (unwinding_ == Unwinding::kAfterwards || wishes.chosen || plan_.launches() ||
      plan_.perf_options->output.pipe || plan_.perf_options->kcore) {
    return false;
  }
  auto opened = StackSampler::open({}, true, logger_);
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    logger_.debug("stacks are copied: {}", phrase(*why));
    return false;
  }
  native_ = std::get<std::unique_ptr<StackSampler>>(std::move(opened));
  native_->keep_time_by(recording_clock(*plan_.perf_options));
  native_->add_native_of(wishes, interrupted);
  return true;
}

Engine::Attached TrampolineEngine::attach(PerfRun& perf, const targets::Manager& /*manager*/) {
  if (!native_) {
    return Attached::kYes;
  }
  switch (native_->attach(perf)) {
    case StackSampler::Attached::kYes:
      native_->start();
      return Attached::kYes;
    case StackSampler::Attached::kNone:
      return Attached::kFailed;
    case StackSampler::Attached::kEnded:
      return Attached::kPerfEnded;
  }
  return Attached::kFailed;
}

std::string TrampolineEngine::why_replaceable() const {
  return native_ == nullptr || native_->why_not_attached().empty()
             ? std::string{}
             : "the BPF program that unwinds stacks cannot be attached to perf's events: " +
                   native_->why_not_attached();
}

void TrampolineEngine::events_disabled() {
  frames_.stop();
  if (native_) {
    native_->stop();
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
  if (native_) {
    native_->add_native(active.target.id.pid);
  }
  if (other_events_ &&
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
  context.native = native_ ? &native_->stacks() : nullptr;
  const std::lock_guard lock{mutex_};
  context.map_writers = map_writers_;
}

void TrampolineEngine::summarize(RecordSummary& summary) {
  const auto effort = frames_.effort();
  logger_.debug(
      "rounds of reading frames: {}, {} us of processor time", effort.rounds,
      std::chrono::duration_cast<std::chrono::microseconds>(effort.processor_time).count());
  summary.unknown_threads = frames_.unknown_threads();
  if (const auto lost = native_ ? native_->stats().lost : 0; lost != 0) {
    logger_.warning("{} without callers: the BPF program's buffer was full; a lower -F helps",
                    base::counted(lost, "sample"));
  }
}

}  // namespace pyinject::record
