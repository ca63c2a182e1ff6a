// The command is the target: it is held back until perf's events are enabled.
#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/session/call_graph.hpp"
#include "pyinject/session/target_selection.hpp"
#include "session/recorder.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

namespace pyinject::session {

namespace {

using base::Deadline;
using python::Reason;

constexpr const char* kVariable = "PYTHONPERFSUPPORT";
constexpr const char* kJitVariable = "PYTHON_PERF_JIT_SUPPORT";  // 3.13 and later, goes before it

// With these a trampoline that is on from the start may crash the program.
bool does_harm(Reason reason) {
  return reason == Reason::kBadPatchRelease || reason == Reason::kFreeThreaded ||
         reason == Reason::kBrokenTrampoline;
}

}  // namespace

// The trampoline of all that the command starts is switched on by their environment. False: it will
// stay off.
bool Recorder::ask_for_trampolines(std::map<std::string, std::string>& environment) {
  const char* const path = std::getenv("PATH");
  interpreter_ =
      find_command_interpreter(options_.command, path == nullptr ? "/bin:/usr/bin" : path);
  const char* const value = std::getenv(kVariable);
  const bool chosen = value != nullptr && *value != '\0';
  const auto number = chosen ? base::parse_number<int>(value) : std::optional{1};
  const auto refusal = interpreter_ ? interpreter_->file.refusal : std::nullopt;
  if (refusal) {
    logger_.warning("{}: {}; recorded without the names of its Python functions",
                    base::printable(interpreter_->name), python::describe(*refusal));
  }
  const bool off = !number || *number == 0;
  if (off) {
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
  return !off;
}

void Recorder::hold_command() {
  std::map<std::string, std::string> environment;
  const bool by_environment = sampler_ == nullptr && ask_for_trampolines(environment);
  command_ = std::make_unique<base::Child>(base::ChildOptions{.argv = options_.command,
                                                              .ignored = signals_.ignored_before(),
                                                              .environment = environment,
                                                              .held = true});
  pids_ = {command_->pid()};
  if (sampler_ != nullptr) {  // its Pythons are added when they are loaded
    process_watch_ = watch::watch_processes(logger_);
    population_ = Population::of_families(pids_);
    (void)population_.choose(visible_processes());
    return;
  }
  // CPython appends: what a process of that number left would be taken for names of this one.
  const auto map = fmt::format("/tmp/perf-{}.map", command_->pid().value());
  (void)std::rename(map.c_str(), (map + ".old").c_str());
  if (by_environment) {
    launched_ = std::make_unique<LaunchedProcesses>(detector_, logger_, command_->pid());
    if (const auto refusal = interpreter_ ? interpreter_->file.refusal : std::nullopt) {
      launched_->told(refusal->reason, interpreter_->file.version);
    }
  }
}

void Recorder::choose_call_graph_of_launched(const CallGraphWishes& wishes) {
  LaunchedFacts facts{.name = base::printable(options_.command.front())};
  if (interpreter_) {
    facts.name = base::printable(interpreter_->name);
    if (interpreter_->file.version.major != 0) {
      facts.name += fmt::format(" (Python {})", python::to_string(interpreter_->file.version));
    }
    facts.frame_pointers = interpreter_->file.frame_pointers;
  }
  take(session::choose_for_launched(facts, wishes));
  if (launched_ && facts.frame_pointers == std::optional{true} && !wishes.chosen) {
    launched_->follows_frame_pointers();
  }
}

// perf did, or the command that was held back.
int Recorder::ended_before_launch() {
  if (const auto status = command_->wait(Deadline::after(std::chrono::milliseconds{500}))) {
    logger_.error("the command ended before it began: {}", base::describe(*status));
    return give_up(status->shell_status());
  }
  const int status = perf_failed();
  return status == 0 ? kFailure : status;
}

}  // namespace pyinject::session
