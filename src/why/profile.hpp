// A recording of `why` as a profile, for pictures and exports.
#pragma once

#include "pyinject/report/profile.hpp"
#include "why/accounting.hpp"
#include "why/recording.hpp"

namespace pyinject::why {

// Two events: CPU samples, which together last as long as the threads were on a CPU, and waits. The
// innermost frame is what the thread ran or where it waited: a function of the kernel, a C
// function, or its file; below a wait that only a snapshot tells is a mark, "[waits for a lock]".
[[nodiscard]] report::Profile to_profile(const Recording& recording, const Accounts& accounts);

}  // namespace pyinject::why
