// The open files of a process: /proc/PID/fd, proc_pid_fd(5). The process may close them or open
// others at any moment. The directory has the mode bits of the process's user; CAP_SYS_PTRACE alone
// does not give access to it.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace pyinject::procfs {

// The descriptors that PID has open, in ascending order; for this process also the one that it
// lists them with. nullopt: they cannot be listed, errno says why. Does not throw at a shortage.
[[nodiscard]] std::optional<std::vector<int>> list_descriptors(base::Pid pid);

// The name that the kernel shows for descriptor NUMBER of PID: a path, with " (deleted)" behind it
// if the file has no name any more, or something like "anon_inode:[perf_event]". Not a safe way to
// the file. nullopt: errno says why.
[[nodiscard]] std::optional<std::string> read_descriptor_link(base::Pid pid, int number);
// The same of a descriptor of this process, whatever pid namespace /proc is of.
[[nodiscard]] std::optional<std::string> read_own_descriptor_link(int fd);

// What stat(2) gives for the open file. nullopt: errno says why.
[[nodiscard]] std::optional<struct stat> stat_descriptor(base::Pid pid, int number);

// Opens the file behind descriptor NUMBER of PID again; FLAGS as of open(2), to which O_CLOEXEC is
// added. O_PATH opens nothing yet: see reopen(). Not valid() on failure: errno says why.
[[nodiscard]] base::UniqueFd open_descriptor(base::Pid pid, int number, int flags);

// Paths that lead to the open file: /proc/PID/fd/NUMBER from other processes, too, /proc/self/fd/FD
// from this one only.
[[nodiscard]] std::string descriptor_path(base::Pid pid, int number);
[[nodiscard]] std::string own_descriptor_path(int fd);

}  // namespace pyinject::procfs
