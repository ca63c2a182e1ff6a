// Pids in a message.
#pragma once

#include "pyinject/base/pid.hpp"

#include <string>
#include <vector>

namespace pyinject::targets {

// "pid 12", "pids 12, 13, 14 and 7 more".
[[nodiscard]] std::string list_pids(const std::vector<base::Pid>& pids);

}  // namespace pyinject::targets
