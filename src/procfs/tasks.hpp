// Which threads and processes there are: snapshots, outdated when they are returned.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace pyinject::procfs {

// In ascending order; empty when the process has gone or may not be read. Throws base::SystemError
// when a shortage of descriptors or memory keeps it from knowing.
[[nodiscard]] std::vector<base::Tid> list_tasks(base::Pid pid);

// An O_PATH descriptor of /proc/PID/task, for count_tasks(). Not valid(): errno says why.
[[nodiscard]] base::UniqueFd open_tasks(base::Pid pid);
// The number of threads of the process that TASKS was opened of: one system call instead of a
// listing. The kernel counts the threads among the links of the directory, behind the directory's
// own two (proc_task_getattr()); one that counts otherwise gives another number. nullopt: not
// known.
[[nodiscard]] std::optional<std::size_t> count_tasks(const base::UniqueFd& tasks);

// All processes that this procfs shows, kernel threads included, in ascending order. Throws
// base::Error when it cannot know.
[[nodiscard]] std::vector<base::Pid> list_processes();

}  // namespace pyinject::procfs
