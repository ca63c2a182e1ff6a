// Several recordings as one.
#pragma once

#include "pyinject/report/profile.hpp"

#include <vector>

namespace pyinject::report {

// Samples in order of time, as far as their clocks agree; equal functions, stacks and events once;
// a thread is the same if its pid, tid and names are. Notes: each once. PROFILES: at least one.
[[nodiscard]] Profile merge(std::vector<Profile> profiles);

}  // namespace pyinject::report
