// Which threads and processes there are: snapshots, outdated when they are returned.
#pragma once

#include "pyinject/base/pid.hpp"

#include <vector>

namespace pyinject::procfs {

// In ascending order; empty when the process has gone or cannot be read (errno says why).
[[nodiscard]] std::vector<base::Tid> list_tasks(base::Pid pid);

// All processes that this procfs shows, kernel threads included, in ascending order.
[[nodiscard]] std::vector<base::Pid> list_processes();

}  // namespace pyinject::procfs
