// How long tests wait for an event that must occur.
#pragma once

#include <chrono>

namespace pyinject::test {

// Generous: the machine may be busy.
inline constexpr std::chrono::seconds kPatience{120};
// In milliseconds, for poll(2).
inline constexpr int kPatienceMs = kPatience / std::chrono::milliseconds{1};

}  // namespace pyinject::test
