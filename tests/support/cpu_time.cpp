#include "support/cpu_time.hpp"

#include "pyinject/base/error.hpp"

#include <cerrno>
#include <ctime>

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

}  // namespace pyinject::test
