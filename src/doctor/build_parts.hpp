// The optional parts of this build.
#pragma once

#include "doctor/facts.hpp"

#include <vector>

namespace pyinject::doctor {

[[nodiscard]] std::vector<BuildPart> build_parts();

}  // namespace pyinject::doctor
