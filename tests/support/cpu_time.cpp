#include "support/cpu_time.hpp"

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "support/patience.hpp"

#include <cerrno>
#include <ctime>

#include <poll.h>

namespace pyinject::test {

std::chrono::nanoseconds cpu_time(base::Pid pid) {
  clockid_t clock{};
  timespec time{};
  if (const int error = ::clock_getcpuclockid(pid.value(), &clock); error != 0) {
    throw base::SystemError{"clock_getcpuclockid", error};
  }
  if (::clock_gettime(clock, &time) != 0) {
    throw base::SystemError{"clock_gettime", errno};
  }
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// Polls: the kernel offers no event for that. Meanwhile the processor is left to the process.
void wait_for_cpu_time(base::Pid pid, std::chrono::nanoseconds more) {
  const auto enough = cpu_time(pid) + more;
  const auto deadline = base::Deadline::after(kPatience);
  while (cpu_time(pid) < enough && !deadline.expired()) {
    ::poll(nullptr, 0, 5);
  }
}

}  // namespace pyinject::test
