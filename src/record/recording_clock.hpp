// The clock of perf's timestamps.
#pragma once

#include "pyinject/perf/perf_options.hpp"

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

namespace pyinject::record {

// The clock named by perf's -k, --clockid; nullopt: none that this process can read.
[[nodiscard]] std::optional<clockid_t> clock_by_name(const std::string& name);

// The clock of a recording with PERF_OPTIONS: the one they choose, else this tool's default.
[[nodiscard]] std::optional<clockid_t> recording_clock(const perf::ParsedOptions& perf_options);

}  // namespace pyinject::record
