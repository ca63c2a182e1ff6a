// Waiting for a target to wait.
#pragma once

#include "base/file.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/pid.hpp"
#include "support/patience.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include <sched.h>

namespace pyinject::test {

// Whether a thread sleeps, is stopped or has ended. One that waits for a disk goes on by itself; so
// does one that is being woken, of which /proc/PID/syscall still says where it slept.
inline bool at_rest(base::Pid pid, base::Tid tid) {
  const auto stat = procfs::read_stat(pid, tid);
  return stat && std::string_view{"STtZ"}.find(stat->state) != std::string_view::npos;
}

// Until the main thread is inside a system call in which it sleeps. The kernel has no event for
// that. Throws base::Error when it does not come to it.
inline void wait_until_asleep(base::Pid pid) {
  const auto deadline = base::Deadline::after(kPatience);
  const auto path =
      "/proc/" + std::to_string(pid.value()) + "/task/" + std::to_string(pid.value()) + "/syscall";
  std::string last;
  for (int seen = 0; seen < 3;) {
    if (deadline.expired()) {
      throw base::Error{"it does not go to sleep: " + last};
    }
    const auto now = base::read_file(path).value_or("");
    const bool same = !now.empty() && std::isdigit(static_cast<unsigned char>(now[0])) != 0 &&
                      now == last && at_rest(pid, base::Tid{pid.value()});
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
