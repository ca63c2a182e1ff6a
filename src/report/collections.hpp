// The garbage collector in recordings of the trampoline engine: by the names of C functions.
#pragma once

#include "pyinject/report/profile.hpp"

#include <cstdint>
#include <functional>

namespace pyinject::report {

// Adds the frame `[gc]` to the stacks of samples in which functions of the interpreter collect
// garbage, where `--engine bpf` has it: the innermost Python function is its caller. An interpreter
// without symbols has no such names, and its samples stay as they are.
// CHILD: returns the node of PROFILE with this caller and this frame, a new one if there is none.
void add_collections(
    Profile& profile,
    const std::function<std::uint32_t(std::uint32_t caller, std::uint32_t frame)>& child);

}  // namespace pyinject::report
