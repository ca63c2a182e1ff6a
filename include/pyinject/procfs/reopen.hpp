// From an O_PATH descriptor, which has opened nothing yet, to one that can be read.
#pragma once

#include "pyinject/base/unique_fd.hpp"

namespace pyinject::procfs {

// The very file that LOCATED stands for; the caller has looked that it is no device or FIFO. Not
// valid() on failure: errno says why.
[[nodiscard]] base::UniqueFd reopen(const base::UniqueFd& located, int flags);

}  // namespace pyinject::procfs
