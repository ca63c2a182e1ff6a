// Assembles a thread's stack from its frames. Pure.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/stacks/code_objects.hpp"
#include "python/stacks/frame_walk.hpp"

#include <vector>

namespace pyinject::python {

// Merges the stacks of a thread in several interpreters, group by group (the frames of one
// activation of the evaluator), ordered by the addresses of their entry frames on the thread's C
// stack.
[[nodiscard]] RawStack joined(std::vector<RawStack> stacks);

// Adds lines and removes CPython's own frames. CODES must contain all code objects of STACK.
[[nodiscard]] ThreadStack assembled(base::Tid tid, const RawStack& stack, const CodeObjects& codes);

}  // namespace pyinject::python
