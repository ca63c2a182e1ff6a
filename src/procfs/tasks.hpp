// Which threads and processes there are: snapshots, outdated when they are returned.
#pragma once

#include "pyinject/base/pid.hpp"

#include <vector>

namespace pyinject::procfs {

// In ascending order; empty when the process has gone or may not be read. Throws base::SystemError
// when a shortage of descriptors or memory keeps it from knowing.
[[nodiscard]] std::vector<base::Tid> list_tasks(base::Pid pid);

// All processes that this procfs shows, kernel threads included, in ascending order. Throws
// base::Error when it cannot know.
[[nodiscard]] std::vector<base::Pid> list_processes();

}  // namespace pyinject::procfs
