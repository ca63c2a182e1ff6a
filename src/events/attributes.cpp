#include "events/attributes.hpp"

#include <ctime>

namespace pyinject::events {

perf_event_attr software_event(std::uint64_t config) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = config;
  attr.sample_type = PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

perf_event_attr processor_clock(std::chrono::nanoseconds period) {
  auto attr = software_event(PERF_COUNT_SW_CPU_CLOCK);
  attr.sample_period = static_cast<std::uint64_t>(period.count());
  attr.exclude_idle = 1;
  attr.disabled = 1;
  return attr;
}

}  // namespace pyinject::events
