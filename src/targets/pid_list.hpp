// Pids in a message.
#pragma once

#include "pyinject/base/pid.hpp"

#include <string>
#include <vector>

namespace pyinject::session {

// "pid 12", "pids 12, 13, 14 and 7 more".
[[nodiscard]] std::string list_pids(const std::vector<base::Pid>& pids);

}  // namespace pyinject::session
