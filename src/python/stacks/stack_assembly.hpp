// From what was read of a thread's frames to its stack. Pure.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/stacks/code_objects.hpp"
#include "python/stacks/frame_walk.hpp"

#include <vector>

namespace pyinject::python {

// One stack of those that a thread has in several interpreters: group by group (the frames of one
// activation of the evaluator), by where their entry frames are on the thread's C stack.
[[nodiscard]] RawStack joined(std::vector<RawStack> stacks);

// With lines, and without what CPython has put between. CODES knows all of STACK's.
[[nodiscard]] ThreadStack assembled(base::Tid tid, const RawStack& stack, const CodeObjects& codes);

}  // namespace pyinject::python
