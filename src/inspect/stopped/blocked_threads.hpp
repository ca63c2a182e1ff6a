// The C functions of threads that are blocked in the kernel, without a stop.
#pragma once

#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/python/target.hpp"

namespace pyinject::inspect {

// Adds the C functions to the threads of SNAPSHOT, which was taken without a stop. False: SNAPSHOT
// is unchanged, since a thread runs or has run since, or since not all of its C functions can be
// found by what /proc tells of its registers. TARGET: nullptr if the interpreter is unknown.
[[nodiscard]] bool add_native_of_blocked(ProcessSnapshot& snapshot, const python::Target* target);

}  // namespace pyinject::inspect
