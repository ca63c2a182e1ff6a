// What must not be left in, or of, a target.
#pragma once

#include "stress/stressed_target.hpp"
#include "support/snapshot.hpp"

#include <string>
#include <vector>

namespace pyinject::test {

// While it works, switched off: nobody traces it, and no thread stands still (STOPS: by a tracer).
[[nodiscard]] std::vector<std::string> left_in_threads(base::Pid pid, bool stops);

// Before its work and after: descriptors, signal masks and handlers, executable memory.
[[nodiscard]] std::vector<std::string> left_in_process(const Snapshot& before,
                                                       const Snapshot& after);

// A map whose lines are damaged or name an address twice.
[[nodiscard]] std::vector<std::string> wrong_in_map(const std::string& path);

}  // namespace pyinject::test
