// CPU time and waits as one event.
#pragma once

#include "pyinject/report/profile.hpp"

namespace pyinject::report {

// Adds the event "wall clock", the first one, which has each sample of the CPU clock and each wait,
// with their times; a wait's stack ends with what it is for: "waits: network". False, and PROFILE
// is as it was: it lacks a CPU clock (Unit::kNanoseconds) or waits.
[[nodiscard]] bool add_wall_clock(Profile& profile);

}  // namespace pyinject::report
