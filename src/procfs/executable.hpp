// The program of a process: /proc/PID/exe.
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

namespace pyinject::procfs {

// Device and inode of the executable of PID as in stat(2) (not comparable with Mapping's device),
// even if it is deleted. nullopt: no executable (kernel thread, zombie), exited, or no permission
// to trace; errno says why.
[[nodiscard]] std::optional<std::pair<dev_t, ino_t>> executable_of(base::Pid pid);

// The path of this program; nullopt: its file has been replaced or removed.
[[nodiscard]] std::optional<std::string> own_path();

// A path by which this process, or a child that it has forked, executes this program again, even if
// the file has been replaced or removed.
[[nodiscard]] std::string own_executable();

}  // namespace pyinject::procfs
