#include "record/trampoline_engine.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/targets/this_session.hpp"
#include "record/extension_modules.hpp"
#include "record/recording_clock.hpp"
#include "targets/pid_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <variant>

namespace pyinject::session {

namespace {

using python::Reason;

constexpr int kLooks = 5;  // at each target's Python stacks, before the size of copies is chosen
constexpr const char* kVariable = "PYTHONPERFSUPPORT";
constexpr const char* kJitVariable = "PYTHON_PERF_JIT_SUPPORT";  // 3.13 and later, goes before it

// With these a trampoline that is on from the start may crash the program.
bool does_harm(Reason reason) {
  return reason == Reason::kBadPatchRelease || reason == Reason::kFreeThreaded ||
         reason == Reason::kBrokenTrampoline;
}

}  // namespace

TrampolineEngine::TrampolineEngine(const RecordOptions& options, python::Detector& detector,
                                   python::Injector& injector, base::Logger& logger,
                                   RecordObserver& observer)
    : options_{options},
      detector_{detector},
      injector_{injector},
      logger_{logger},
      observer_{observer},
      children_{detector, logger, this_session().session},
      frames_{logger, recording_clock(perf::parse_options(options.perf_options))} {}

void TrampolineEngine::begin() {
  guard_ = std::make_unique<Guard>(
      detector_, injector_, logger_,
      GuardOptions{.session = this_session().session, .maps = options_.maps});
  injector_.prepare();
}

// The trampoline of all that the command starts is switched on by their environment.
std::map<std::string, std::string> TrampolineEngine::environment_of_command() {
  std::map<std::string, std::string> environment;
  const char* const path = std::getenv("PATH");
  interpreter_ =
      find_command_interpreter(options_.command, path == nullptr ? "/bin:/usr/bin" : path);
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
  // CPython appends: what a process of that number left would be taken for names of this one.
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
  LaunchedFacts facts{.name = base::printable(options_.command.front())};
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
  return choose_for_launched(facts, wishes);
}

CallGraphChoice TrampolineEngine::choose_call_graph(const std::vector<python::Target>& targets,
                                                    const CallGraphWishes& wishes,
                                                    const base::Cancellation& interrupted) {
  if (options_.launch) {
    return choose_for_command(wishes);
  }
  if (targets.empty() && options_.children) {
    return choose_for_launched(
        {.name = fmt::format("what starts below {}", list_pids(options_.pids))}, wishes);
  }
  if (guard_) {
    guard_->expect_stops();
  }
  ExtensionModules extensions;
  std::vector<CallGraphFacts> facts;
  for (const auto& target : targets) {
    if (interrupted.stopped()) {
      return {};
    }
    CallGraphFacts one{
        .pid = target.id.pid, .version = target.version, .frame_pointers = target.frame_pointers};
    if (target.frame_pointers) {
      one.extension_without = extensions.without_frame_pointers(target.id.pid).value_or("");
    }
    auto reader = python::StackReader::of(target);
    if (auto* const stacks = std::get_if<python::StackReader>(&reader)) {
      // A server may be idle at one moment, and deep in a request at the next one.
      for (int look = 0; look < kLooks; ++look) {
        for (const auto& stack : stacks->read()) {
          one.python_calls = std::max(one.python_calls, stack.frames.size());
        }
      }
    }
    if (needs_stack_use(one, wishes)) {
      const auto use = injector_.stack_use(target, kStackUse);
      if (const auto* bytes = std::get_if<python::StackUse>(&use)) {
        one.stack_bytes = bytes->bytes;
      }
    }
    facts.push_back(one);
  }
  return session::choose_call_graph(facts, wishes);
}

void TrampolineEngine::before_activation(const python::Target& target) {
  if (guard_) {
    children_.watch(ancestor_now(target.id));
    guard_->watch(target);
  }
}

bool TrampolineEngine::activated(const ActiveTarget& active) {
  if (active.activation.map.valid()) {
    guard_->keep_map(active.target, active.activation.map.get());
  }
  base::reached(base::Step::kActivated);
  if (options_.launch && active.activation.before == python::TrampolineState::kOnByItself) {
    return false;  // on since its first instruction, as it should be
  }
  if (options_.backfill) {
    frames_.add(active);
  }
  return true;
}

void TrampolineEngine::on_tick(Manager& manager) {
  if (launched_) {
    launched_->look(manager);
  }
  manager.keep_trampolines();
}

void TrampolineEngine::forget(const ActiveTarget& active) {
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
  context.interpreters = weave::interpreters_of(frames_.evaluators());
  context.entry_frames = FrameWatch::entry_frames();
}

void TrampolineEngine::summarize(RecordSummary& summary) {
  const auto effort = frames_.effort();
  logger_.debug(
      "frames were read {} times, in {} us of processor time", effort.rounds,
      std::chrono::duration_cast<std::chrono::microseconds>(effort.processor_time).count());
  summary.unknown_threads = frames_.unknown_threads();
}

}  // namespace pyinject::session
