// Waiting for a target to wait.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/pid.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include <sched.h>

namespace pyinject::test {

// Until the main thread is inside a system call in which it sleeps. The kernel has no event for
// that.
inline void wait_until_asleep(base::Pid pid) {
  const auto deadline = base::Deadline::after(std::chrono::seconds{20});
  const auto path =
      "/proc/" + std::to_string(pid.value()) + "/task/" + std::to_string(pid.value()) + "/syscall";
  std::string last;
  for (int seen = 0; seen < 3 && !deadline.expired();) {
    const auto now = base::read_file(path).value_or("");
    const bool same =
        !now.empty() && std::isdigit(static_cast<unsigned char>(now[0])) != 0 && now == last;
    seen = same ? seen + 1 : 0;
    last = now;
    ::sched_yield();
  }
}

// How often PID's main thread gave way to others: nothing but a tracer makes one run that sleeps.
inline std::string times_switched(base::Pid pid) {
  const auto status =
      base::read_file("/proc/" + std::to_string(pid.value()) + "/status").value_or("");
  return status.substr(std::min(status.find("voluntary_ctxt_switches"), status.size()));
}

}  // namespace pyinject::test
