// The answer to `perf-pyinject` alone: the Python processes, and the commands to start with.
#pragma once

#include "cli/cpu_meter.hpp"
#include "pyinject/targets/status_report.hpp"

#include <cstddef>
#include <string>

namespace pyinject::cli {

// The busiest processes of REPORT come first. WIDTH: of the terminal; 0: unknown. Pure.
[[nodiscard]] std::string to_overview(const targets::StatusReport& report, const CpuShares& shares,
                                      std::size_t width);

}  // namespace pyinject::cli
