// The clock by which perf gives its records their times.
#pragma once

#include "perf/record_options.hpp"

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

namespace pyinject::session {

// The clock that perf's -k, --clockid names; nullopt: none that can be read here.
[[nodiscard]] std::optional<clockid_t> clock_by_name(const std::string& name);

// That of a recording with PERF_OPTIONS: the one that they choose, else that of this tool's choice.
[[nodiscard]] std::optional<clockid_t> recording_clock(const perf::PerfOptions& perf_options);

// In nanoseconds.
[[nodiscard]] std::uint64_t now_by(clockid_t clock);

}  // namespace pyinject::session
