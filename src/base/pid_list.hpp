// Pids in a message.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace pyinject::base {

inline constexpr std::size_t kMostListedPids = 3;

// "pid 12", "pids 12, 13, 14 and 7 more". PIDS: at least the first ones, of COUNT.
[[nodiscard]] std::string list_pids(std::span<const Pid> pids, std::size_t count);

}  // namespace pyinject::base
