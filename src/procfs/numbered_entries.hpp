// Directories of /proc whose entries are numbers: /proc, /proc/PID/task, /proc/PID/fd.
#pragma once

#include <functional>
#include <string>

namespace pyinject::procfs {

// Calls ON_NUMBER with each entry of DIRECTORY that is a number, in the kernel's order; skips all
// others. Returns 0, or the errno that ended the listing; ON_NUMBER may have been called before.
[[nodiscard]] int for_each_number(const std::string& directory,
                                  const std::function<void(int)>& on_number);

}  // namespace pyinject::procfs
