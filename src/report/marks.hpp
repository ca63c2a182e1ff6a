// Marks are entries at the root of a stack that name a state instead of a function.
#pragma once

#include "report/profile.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::report {

// What the marks of a stack say; empty: nothing.
struct Marks {
  std::string task;  // the asyncio task that ran
  std::string gil;   // "held", "waiting"
  std::string wait;  // "preempted"
};

// The frames of STACK, innermost first, as indices in Profile::frames.
[[nodiscard]] std::vector<std::uint32_t> frames_of(const Profile& profile, std::uint32_t stack);
[[nodiscard]] const Function& function_of(const Profile& profile, std::uint32_t frame);
// Removes from FRAMES the marks that Marks can hold, and returns them.
[[nodiscard]] Marks take_marks(const Profile& profile, std::vector<std::uint32_t>& frames);

}  // namespace pyinject::report
