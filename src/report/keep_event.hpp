// Restricts a profile to one event.
#pragma once

#include "pyinject/report/profile.hpp"

#include <string_view>

namespace pyinject::report {

// Drops the samples of all events but NAME from PROFILE. False: PROFILE has no such event, and
// stays as it is.
[[nodiscard]] bool keep_event(Profile& profile, std::string_view name);

}  // namespace pyinject::report
