// The clock of a recording, and the time of day.
#pragma once

#include "perfdata/input.hpp"
#include "pyinject/report/profile.hpp"

#include <cstdint>
#include <optional>

namespace pyinject::report {

[[nodiscard]] Clock clock_of(const perfdata::Input& input);
// CLOCK_MONOTONIC.
[[nodiscard]] Clock monotonic_clock();

// TIME by CLOCK_REALTIME; nullopt: the recording does not say.
[[nodiscard]] std::optional<std::uint64_t> wall_time(const Clock& clock, std::uint64_t time);

}  // namespace pyinject::report
