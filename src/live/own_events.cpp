#include "live/own_events.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::live {

namespace {

base::UniqueFd open_on(int processor, std::chrono::nanoseconds period) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = static_cast<std::uint64_t>(period.count());
  attr.sample_type = PERF_SAMPLE_TIME;
  attr.disabled = 1;
  attr.exclude_idle = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return base::UniqueFd{static_cast<int>(
      ::syscall(SYS_perf_event_open, &attr, -1, processor, -1, PERF_FLAG_FD_CLOEXEC))};
}

std::string why_not(int error) {
  if (error == EACCES || error == EPERM) {
    return "no permission to sample the processors: run as root, with CAP_PERFMON, or with "
           "kernel.perf_event_paranoid at most 0";
  }
  return fmt::format("cannot open a sampling event: {}", base::errno_text(error));
}

}  // namespace

std::variant<OwnEvents, std::string> OwnEvents::open(std::chrono::nanoseconds period) {
  OwnEvents events;
  const auto configured = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int processor = 0; processor < configured; ++processor) {
    auto event = open_on(processor, period);
    if (event.valid()) {
      events.events_.push_back(std::move(event));
    } else if (errno != ENODEV && errno != ENXIO) {  // not: the processor is offline
      return why_not(errno);
    }
  }
  if (events.events_.empty()) {
    return "no processor can be sampled";
  }
  return events;
}

void OwnEvents::enable() {
  for (const auto& event : events_) {
    ::ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0);
  }
}

}  // namespace pyinject::live
