// Lists directories of /proc with numeric entries: /proc, /proc/PID/task, /proc/PID/fd.
#pragma once

#include <functional>
#include <string>

namespace pyinject::procfs {

// Calls ON_NUMBER for each numeric entry of DIRECTORY in the kernel's order; skips other entries.
// Returns 0, or the errno that ended the listing, perhaps after calls of ON_NUMBER.
[[nodiscard]] int for_each_number(const std::string& directory,
                                  const std::function<void(int)>& on_number);

}  // namespace pyinject::procfs
