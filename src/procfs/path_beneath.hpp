// Paths that start at a directory descriptor, for system calls that have no *at variant.
#pragma once

#include <string>

namespace pyinject::procfs {

// Leads to NAME in the directory that this process has open as DIRECTORY.
[[nodiscard]] std::string path_beneath(int directory, const std::string& name);

}  // namespace pyinject::procfs
