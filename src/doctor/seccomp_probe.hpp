// Finds the system calls that seccomp filters on this tool prevent.
#pragma once

#include "doctor/facts.hpp"

#include <vector>

namespace pyinject::doctor {

// Each call is tried in a child process of its own, with arguments that the kernel rejects before
// it does anything: a filter may kill the caller.
[[nodiscard]] std::vector<BlockedCall> blocked_calls();

}  // namespace pyinject::doctor
