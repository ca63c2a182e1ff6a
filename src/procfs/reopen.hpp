// Turns an O_PATH descriptor, which has not opened its file, into a readable one.
#pragma once

#include "pyinject/base/unique_fd.hpp"

namespace pyinject::procfs {

// Opens the file of LOCATED; the caller must have checked that it is no device or FIFO. Not valid()
// on failure: errno says why.
[[nodiscard]] base::UniqueFd reopen(const base::UniqueFd& located, int flags);

// False: LOCATED is on proc, sysfs, tracefs or another kernel interface, which a target can have
// mounted anywhere, and on which opening or reading can have side effects (/proc/kmsg).
[[nodiscard]] bool holds_data(const base::UniqueFd& located);

}  // namespace pyinject::procfs
