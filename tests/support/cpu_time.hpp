// The CPU time that a process has used.
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>

namespace pyinject::test {

// The time of all its threads. Throws base::SystemError if the process is gone.
[[nodiscard]] std::chrono::nanoseconds cpu_time(base::Pid pid);
// Waits until PID has used MORE time, at most kPatience.
void wait_for_cpu_time(base::Pid pid, std::chrono::nanoseconds more);

}  // namespace pyinject::test
