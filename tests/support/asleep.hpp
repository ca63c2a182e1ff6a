// Waits until a target sleeps.
#pragma once

#include "base/file.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
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

// Whether a thread sleeps, is stopped or has ended. Disk sleep does not count: it ends by itself.
// Nor does a thread that is being woken, for which /proc/PID/syscall still shows the call it slept
// in.
inline bool at_rest(base::Pid pid, base::Tid tid) {
  const auto stat = procfs::read_stat(pid, tid);
  return stat && std::string_view{"STtZ"}.find(stat->state) != std::string_view::npos;
}

// Polls until the thread sleeps inside a system call; the kernel offers no event for that. Throws
// base::Error if that does not happen in time.
inline void wait_until_asleep(base::Pid pid, base::Tid tid) {
  const auto deadline = base::Deadline::after(kPatience);
  const auto path =
      "/proc/" + std::to_string(pid.value()) + "/task/" + std::to_string(tid.value()) + "/syscall";
  std::string last;
  for (int seen = 0; seen < 3;) {
    if (deadline.expired()) {
      throw base::Error{"it does not go to sleep: " + last};
    }
    const auto now = base::read_file(path).value_or("");
    const bool same = !now.empty() && std::isdigit(static_cast<unsigned char>(now[0])) != 0 &&
                      now == last && at_rest(pid, tid);
    seen = same ? seen + 1 : 0;
    last = now;
    ::sched_yield();
  }
}

// The main thread.
inline void wait_until_asleep(base::Pid pid) { wait_until_asleep(pid, base::Tid{pid.value()}); }

// A free-threaded CPython yields the processor some times before a thread waits for a lock.
inline void wait_until_all_asleep(base::Pid pid) {
  for (const auto tid : procfs::list_tasks(pid)) {
    wait_until_asleep(pid, tid);
  }
}

// The context switch counts of PID's main thread. While it sleeps, only a tracer makes them grow.
inline std::string times_switched(base::Pid pid) {
  const auto status =
      base::read_file("/proc/" + std::to_string(pid.value()) + "/status").value_or("");
  return status.substr(std::min(status.find("voluntary_ctxt_switches"), status.size()));
}

}  // namespace pyinject::test
