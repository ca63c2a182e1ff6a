// What must not be left in a target, or of it.
#pragma once

#include "stress/stressed_target.hpp"
#include "support/snapshot.hpp"

#include <string>
#include <vector>

namespace pyinject::test {

// While it works, switched off: no thread may be traced, or stopped (STOPS: by a tracer).
[[nodiscard]] std::vector<std::string> left_in_threads(base::Pid pid, bool stops);

// A snapshot in which no thread is exiting: a joined thread may still be in the C library's exit,
// with its signals blocked. If a thread stays so until the deadline, the snapshot has it.
[[nodiscard]] Snapshot take_snapshot_after_exits(base::Pid pid);

// Compares it before and after its work: descriptors, signal masks and handlers, executable memory.
[[nodiscard]] std::vector<std::string> left_in_process(const Snapshot& before,
                                                       const Snapshot& after);

// The lines of a map that are damaged or repeat an address.
[[nodiscard]] std::vector<std::string> wrong_in_map(const std::string& path);

}  // namespace pyinject::test
