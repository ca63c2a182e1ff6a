// Threads that wait for each other.
#pragma once

#include "python/objects/object_reader.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace pyinject::python {

// Each cycle among WAITS: the indexes of its members, where each one's owner is the next one's
// waiter, and the last one's owner is the first one's waiter. The first is the one with the lowest
// tid. Waits without an owner are in no cycle.
[[nodiscard]] std::vector<std::vector<std::size_t>> find_deadlocks(std::span<const Wait> waits);

}  // namespace pyinject::python
