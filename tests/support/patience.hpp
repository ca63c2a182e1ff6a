// How long tests wait for what has to come.
#pragma once

#include <chrono>

namespace pyinject::test {

// Generous: the machine may do other things.
inline constexpr std::chrono::seconds kPatience{60};
// The same for poll(2).
inline constexpr int kPatienceMs = kPatience / std::chrono::milliseconds{1};

}  // namespace pyinject::test
