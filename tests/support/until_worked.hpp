// Commands that make a recording last for a given amount of work, however slow the machine is.
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace pyinject::test {

// A command that ends when PID has used TIME more of CPU time, or is gone.
[[nodiscard]] std::vector<std::string> until_worked(base::Pid pid, std::chrono::milliseconds time);

// The same, followed by the shell command THEN.
[[nodiscard]] std::vector<std::string> until_worked(base::Pid pid, std::chrono::milliseconds time,
                                                    const std::string& then);

}  // namespace pyinject::test
