// The state of each Python process: the result of `status`.
//
// For example:
//   const auto report = targets::report_status(detector, {});  // all processes
//   std::cout << targets::to_table(report) << targets::unlisted(report);
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/session_names.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::targets {

struct ProcessStatus {
  base::Pid pid;
  std::optional<python::Version> version;
  std::string interpreter;  // the file that holds it; empty: unknown
  std::optional<bool> frame_pointers;
  std::optional<python::TrampolineState> trampoline;  // nullopt: refused
  python::OwnerState owner = python::OwnerState::kNone;
  std::optional<python::Refusal> refusal;  // nullopt: ready or already on
  std::vector<std::string> warnings;
  std::string user;       // name of its effective uid, else the number; empty: unknown
  std::string command;    // its arguments as the process shows them; empty: unknown
  bool only_bpf = false;  // refused, but record --engine bpf can read its stacks
};

struct StatusReport {
  std::vector<ProcessStatus> processes;
  // Not listed because nothing could be found out about them without more privileges.
  std::size_t unreadable = 0;
  // Not listed because examining their files exceeded the limits.
  std::size_t not_examined = 0;
};

[[nodiscard]] ProcessStatus status_of(base::Pid pid, const python::Detection& detection);

// One entry for each of PIDS; without PIDS: every visible Python process. Several are examined
// concurrently; those that are slow to examine share 2 s. OBSERVER, of Purpose::kObserve, then
// examines those that DETECTOR refuses, for `only_bpf`; nullptr: no engine reads stacks without the
// trampoline.
[[nodiscard]] StatusReport report_status(python::Detector& detector,
                                         const std::vector<base::Pid>& pids,
                                         python::Detector* observer = nullptr);

// "ready", "on by us", "on by us (session gone)", "on by itself", "only --engine bpf" or the name
// of the reason.
[[nodiscard]] std::string verdict(const ProcessStatus& status);

// docs/status-json.md describes the format.
[[nodiscard]] std::string to_json(const StatusReport& report);

struct TableOptions {
  std::size_t width =
      0;  // of the terminal, in columns: command lines are cut to it; 0: they are not
  bool verbose = false;  // explain each process separately, and show its interpreter's file
};

// A heading and a line for each process: PID, USER, PYTHON, FP, STATE, COMMAND. Refusals and
// warnings are explained below, one line for all processes with the same reason.
[[nodiscard]] std::string to_table(const StatusReport& report, const TableOptions& options = {});

// The processes that a report does not list, one line for each reason; empty: none.
[[nodiscard]] std::string unlisted(const StatusReport& report);

}  // namespace pyinject::targets
