// record --repeat DURATION/PERIOD --keep N.
#pragma once

#include "pyinject/record/repeated_recording.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace pyinject::cli {

// "500ms", "30s", "5m", "1h", and "1.5h": greater than zero, at most a year.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_span(std::string_view text);

// "1%", "0.5%" or "1", of one CPU: 0.01 is 1 %. Greater than zero, at most 100 CPUs.
[[nodiscard]] std::optional<double> parse_cpu_share(std::string_view text);

// The values of the options; MAX_CPU and KEEP may be missing. Throws CommandLineError, also if
// RECORD cannot be repeated.
[[nodiscard]] record::RepeatOptions parse_repeat(const std::string& repeat,
                                                 const std::optional<std::string>& keep,
                                                 const std::optional<std::string>& max_cpu,
                                                 const record::RecordPlan& record);

}  // namespace pyinject::cli
