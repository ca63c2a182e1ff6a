// The open files of a process: /proc/PID/fd, proc_pid_fd(5). The process may close or open files at
// any time. Access to the directory depends on the process's user; CAP_SYS_PTRACE alone is not
// enough.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace pyinject::procfs {

// The open descriptors of PID in ascending order; for this process including the one used to list
// them. nullopt: cannot be listed, errno says why. Does not throw if resources are short.
[[nodiscard]] std::optional<std::vector<int>> list_descriptors(base::Pid pid);

// The kernel's name for descriptor NUMBER of PID: a path, followed by " (deleted)" if the file has
// no name any more, or a name like "anon_inode:[perf_event]". Not a safe way to access the file.
// nullopt: errno says why.
[[nodiscard]] std::optional<std::string> read_descriptor_link(base::Pid pid, int number);
// The same for a descriptor of this process, even if /proc belongs to another pid namespace.
[[nodiscard]] std::optional<std::string> read_own_descriptor_link(int fd);

// The result of stat(2) for the open file. nullopt: errno says why.
[[nodiscard]] std::optional<struct stat> stat_descriptor(base::Pid pid, int number);

// Reopens the file of descriptor NUMBER of PID; FLAGS as for open(2), plus O_CLOEXEC. O_PATH does
// not open the file yet: see reopen(). Not valid() on failure: errno says why.
[[nodiscard]] base::UniqueFd open_descriptor(base::Pid pid, int number, int flags);

// Paths of the open file: /proc/PID/fd/NUMBER also works in other processes, /proc/self/fd/FD only
// in this one.
[[nodiscard]] std::string descriptor_path(base::Pid pid, int number);
[[nodiscard]] std::string own_descriptor_path(int fd);

}  // namespace pyinject::procfs
