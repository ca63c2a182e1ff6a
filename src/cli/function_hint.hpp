// What a user may have meant by the name of a function that a recording does not have.
#pragma once

#include "pyinject/report/profile.hpp"

#include <string>
#include <string_view>

namespace pyinject::cli {

// "no function is called 'encde'; did you mean 'JSONEncoder.encode'?", with up to three names that
// end with WANTED behind a dot, that contain it, or the one that is nearest. Empty: PROFILE has a
// function of this name.
[[nodiscard]] std::string function_hint(const report::Profile& profile, std::string_view wanted);

}  // namespace pyinject::cli
