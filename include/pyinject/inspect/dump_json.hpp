// Snapshots for programs: docs/dump-json.md. Pure.
//
// For example:
//   std::cout << inspect::to_json({{.pid = pid, .snapshot = inspect::take_snapshot(pid, &target)}},
//                                 inspect::JsonForm::kIndented);
#pragma once

#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/python/reason.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::inspect {

// A process that could not be dumped, or not completely.
struct DumpedProcess {
  base::Pid pid;
  std::optional<ProcessSnapshot> snapshot;  // nullopt: REFUSAL says why
  std::optional<python::Refusal> refusal;   // why it has no Python stacks
};

enum class JsonForm { kIndented, kLine };

// Ends with a line feed. Text from the processes is made printable.
[[nodiscard]] std::string to_json(const std::vector<DumpedProcess>& processes, JsonForm form);

}  // namespace pyinject::inspect
