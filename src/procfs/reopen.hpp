// From an O_PATH descriptor, which has opened nothing yet, to one that can be read.
#pragma once

#include "pyinject/base/unique_fd.hpp"

namespace pyinject::procfs {

// The very file that LOCATED stands for; the caller has looked that it is no device or FIFO. Not
// valid() on failure: errno says why.
[[nodiscard]] base::UniqueFd reopen(const base::UniqueFd& located, int flags);

// False: LOCATED is on proc, sysfs, tracefs or another interface of the kernel, which a target can
// have mounted anywhere, and which can have an effect when it is opened or read (/proc/kmsg).
[[nodiscard]] bool holds_data(const base::UniqueFd& located);

}  // namespace pyinject::procfs
