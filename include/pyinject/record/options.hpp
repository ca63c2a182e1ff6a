// What a recording is to do: plain and checked.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/weave/weave_flags.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::session {

// Exit statuses of this tool, beside those of the command.
inline constexpr int kFailure = 125;  // it refuses or fails
inline constexpr int kUsage = 129;    // as perf's own

// Where the Python frames come from.
enum class EngineChoice {
  kTrampoline,  // CPython's own, switched on in the target
  kBpf,         // a program in the kernel reads them; nothing is done to the target
  kAuto,        // kBpf where rights and kernel allow it
};

struct RecordOptions {
  EngineChoice engine = EngineChoice::kTrampoline;
  std::vector<base::Pid> pids;  // empty: ALL, or LAUNCH
  bool all = false;             // the whole system, and every Python process that is visible
  bool launch = false;          // COMMAND is the target, with what it starts
  Scope scope;                  // of ALL: only these
  bool children = false;        // with PIDS: their descendants, too, also later ones
  bool strict = true;
  perf::PerfSearch perf;
  std::vector<std::string> perf_options;  // for `perf record`, unchanged and in order
  std::vector<std::string> command;       // the clock; empty: until a signal comes
  // Without COMMAND: the clock of one recording of several. While it is completed SIGHUP, and the
  // first of the others, do not cut it short.
  std::optional<std::chrono::nanoseconds> duration;
  perf::MapCollectorOptions maps;
  bool backfill = true;  // put in the functions that were entered before the activation
  weave::WeaveFlags flags = {};
  bool names_beside = false;  // of functions, in the folder NAME.names, not in perf's cache
  std::chrono::nanoseconds deactivation_deadline = std::chrono::seconds{5};  // of all together
};

// Every wait has an end. What the user may see is in docs.
inline constexpr std::chrono::seconds kPerfAnswers{5};  // `perf version`, a later control command
inline constexpr std::chrono::seconds kPerfSetsUp{20};  // first acknowledgement, events enabled
inline constexpr std::chrono::seconds kPerfCompletes{300};  // from "stop" to its end
inline constexpr std::chrono::seconds kStackUse{1};         // reading one target's stack pointers
inline constexpr std::chrono::seconds kCommandEnds{5};      // from SIGTERM to SIGKILL

}  // namespace pyinject::session
