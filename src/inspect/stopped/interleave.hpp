// Puts C functions between the Python functions of a thread. Pure.
#pragma once

#include "inspect/stopped/native_stacks.hpp"
#include "pyinject/inspect/snapshot.hpp"

namespace pyinject::inspect {

// The activations of the evaluator are replaced by the Python functions that they run. Without
// effect on the Python functions themselves and on their order. If the two stacks do not belong
// together, THREAD keeps its Python functions only, and `native_missing` says so.
void interleave(ThreadSnapshot& thread, const NativeStack& native);

}  // namespace pyinject::inspect
