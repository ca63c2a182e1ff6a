// The program that a process executes: /proc/PID/exe.
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <utility>

#include <sys/types.h>

namespace pyinject::procfs {

// Device and inode of the executable of PID, as stat(2) gives them (so not comparable with
// Mapping's device), also if it is deleted. nullopt: it has none (kernel thread, zombie), has gone,
// or the caller may not trace it; errno says why.
[[nodiscard]] std::optional<std::pair<dev_t, ino_t>> executable_of(base::Pid pid);

}  // namespace pyinject::procfs
