// Recordings of as much work as a test needs, however slow the machine is.
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace pyinject::test {

// A command that ends when PID has had TIME more of a processor, or has gone.
[[nodiscard]] std::vector<std::string> until_worked(base::Pid pid, std::chrono::milliseconds time);

// The same, and then the shell command THEN.
[[nodiscard]] std::vector<std::string> until_worked(base::Pid pid, std::chrono::milliseconds time,
                                                    const std::string& then);

}  // namespace pyinject::test
