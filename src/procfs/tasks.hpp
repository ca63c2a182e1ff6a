// Lists threads and processes: snapshots, outdated when they are returned.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::procfs {

// In ascending order; empty if the process has exited or access is denied. The kernel ends a
// listing at a thread that is released meanwhile (next_tid() in fs/proc/base.c): a short one is
// repeated, but where threads end all the time, it may still lack living ones. Throws
// base::SystemError if a shortage of descriptors or memory prevents the listing.
[[nodiscard]] std::vector<base::Tid> list_tasks(base::Pid pid);

// An O_PATH descriptor of /proc/PID/task, for count_tasks(). Not valid(): errno says why.
[[nodiscard]] base::UniqueFd open_tasks(base::Pid pid);
// The number of threads of the process that TASKS was opened for: one system call instead of a
// listing. The kernel adds the number of threads to the directory's own two links
// (proc_task_getattr()); a kernel that counts differently yields another number. nullopt: unknown.
[[nodiscard]] std::optional<std::size_t> count_tasks(const base::UniqueFd& tasks);

// /proc/PID/task/TID/comm, the name that the kernel has for a thread: at most 15 bytes, which the
// process chooses. nullopt: as read_stat().
[[nodiscard]] std::optional<std::string> read_comm(base::Pid pid, base::Tid tid);

// All processes visible in this procfs, including kernel threads, in ascending order. Throws
// base::Error if they cannot be listed.
[[nodiscard]] std::vector<base::Pid> list_processes();

}  // namespace pyinject::procfs
