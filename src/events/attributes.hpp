// Attributes that several users of perf_event_open(2) share.
#pragma once

#include <chrono>
#include <cstdint>

#include <linux/perf_event.h>

namespace pyinject::events {

// CONFIG: a PERF_COUNT_SW_*. Each of its samples and of its other records has a time of
// CLOCK_MONOTONIC and nothing else; the caller may add to sample_type.
[[nodiscard]] perf_event_attr software_event(std::uint64_t config);

// Samples a processor each time that it has worked for PERIOD; starts disabled.
[[nodiscard]] perf_event_attr processor_clock(std::chrono::nanoseconds period);

}  // namespace pyinject::events
