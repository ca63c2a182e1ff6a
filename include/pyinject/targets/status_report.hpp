// What could be done with each Python process: the answer of `status`.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::session {

struct ProcessStatus {
  base::Pid pid;
  std::optional<python::Version> version;
  std::string interpreter;  // the file that holds it; empty: unknown
  std::optional<bool> frame_pointers;
  std::optional<python::TrampolineState> trampoline;  // nullopt: refused
  python::OwnerState owner = python::OwnerState::kNone;
  std::optional<python::Refusal> refusal;  // nullopt: ready, or on already
  std::vector<std::string> warnings;
};

struct StatusReport {
  std::vector<ProcessStatus> processes;
  // Not listed, because nothing could be found out about them without more rights.
  std::size_t unreadable = 0;
  // Not listed, because their files could not be looked through within the limits.
  std::size_t not_examined = 0;
};

[[nodiscard]] ProcessStatus status_of(base::Pid pid, const python::Detection& detection);

// PIDS as the user named them, each with its answer; without any: every visible Python process.
// Several are examined at a time; those that are slow to examine share 2 s.
[[nodiscard]] StatusReport report_status(python::Detector& detector,
                                         const std::vector<base::Pid>& pids);

// "ready", "on by us", "on by us (session gone)", "on by itself" or the name of the reason.
[[nodiscard]] std::string verdict(const ProcessStatus& status);

// docs/status-json.md says what is in it.
[[nodiscard]] std::string to_json(const StatusReport& report);
// One line for each process and a heading; refusals are explained below.
[[nodiscard]] std::string to_table(const StatusReport& report);

}  // namespace pyinject::session
