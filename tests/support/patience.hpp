// How long tests wait for what has to come.
#pragma once

#include <chrono>

namespace pyinject::test {

// Generous: the machine may do other things.
inline constexpr std::chrono::seconds kPatience{60};

}  // namespace pyinject::test
