// What to record, and how.
//
// For example:
//   record::RecordPlan plan;
//   plan.targets = record::Families{{pid}};
//   plan.engine = record::EngineChoice::kAuto;
//   plan.perf_options.add({"-F", "99", "-o", "web.data"});
//   plan.duration = std::chrono::seconds{10};
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/perf/perf_options.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/weave/weave_flags.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::record {

// Exit statuses of this tool; all others are the command's.
inline constexpr int kFailure = 125;  // refusal or failure
inline constexpr int kUsage = 129;    // as perf's

// Where the Python frames come from.
enum class EngineChoice {
  kTrampoline,  // CPython's own trampoline, switched on in the target
  kBpf,         // a BPF program reads the frames; the target is not modified
  kAuto,        // kBpf if privileges and kernel allow it
};

// The targets of a recording: one of these.
struct Processes {
  std::vector<base::Pid> pids;
};
struct Families {
  std::vector<base::Pid> roots;  // these and all their descendants, including later ones
};
struct System {
  targets::Scope scope;  // every visible Python process in it; perf records the whole system
};
struct Launched {};  // the command and its descendants
using Targets = std::variant<Processes, Families, System, Launched>;

// Validated.
struct RecordPlan {
  Targets targets;
  EngineChoice engine = EngineChoice::kTrampoline;
  std::string engine_setting;  // the default that chose ENGINE, for messages; empty: not one
  // With kTrampoline: nobody has chosen it. kAuto if BPF suits the targets better
  // (docs/engines.md).
  bool engine_is_open = false;
  bool told_engine = false;  // the choice is no news: an earlier recording told it
  bool strict = true;
  perf::PerfSearch perf;
  perf::PerfOptions perf_options;
  std::vector<std::string> command;  // records until it exits; empty: until a signal arrives
  // Without COMMAND: the length of one of several recordings. While it is post-processed, SIGHUP
  // and the first SIGTERM or SIGINT do not cut it short.
  std::optional<std::chrono::nanoseconds> duration;
  perf::MapCollectorOptions maps;
  bool backfill = true;  // add the functions that were entered before the activation
  weave::WeaveFlags flags = {};
  bool names_beside = false;  // names of functions go into NAME.names, not into perf's cache
  std::chrono::nanoseconds deactivation_deadline = std::chrono::seconds{5};  // in total

  [[nodiscard]] bool whole_system() const { return std::holds_alternative<System>(targets); }
  [[nodiscard]] bool families() const { return std::holds_alternative<Families>(targets); }
  [[nodiscard]] bool launches() const { return std::holds_alternative<Launched>(targets); }
  // Whether processes that start later may be targets.
  [[nodiscard]] bool expects_more() const { return !std::holds_alternative<Processes>(targets); }
  // Those that the user named: of Processes or Families, else none.
  [[nodiscard]] const std::vector<base::Pid>& pids() const;
  // Replaces those; no effect on other targets.
  void replace_pids(std::vector<base::Pid> pids);
  // That of System, else without conditions.
  [[nodiscard]] const targets::Scope& scope() const;
};

// Every wait has a limit. The docs describe those that a user can notice.
inline constexpr std::chrono::seconds kPerfAnswers{5};  // `perf version`, later control commands
inline constexpr std::chrono::seconds kPerfSetsUp{20};  // first acknowledgement, events enabled
inline constexpr std::chrono::seconds kPerfCompletes{300};  // from "stop" until perf exits
inline constexpr std::chrono::seconds kStackUse{1};         // reading one target's stack pointers

}  // namespace pyinject::record
