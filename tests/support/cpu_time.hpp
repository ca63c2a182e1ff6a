// How much of a processor a process has had.
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>

namespace pyinject::test {

// Of all its threads. Throws base::SystemError when it has gone.
[[nodiscard]] std::chrono::nanoseconds cpu_time(base::Pid pid);
// Until it has had so much more; not longer than kPatience.
void wait_for_cpu_time(base::Pid pid, std::chrono::nanoseconds more);

}  // namespace pyinject::test
