// Reads files of /proc about a single process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace pyinject::procfs {

// nullopt: errno is ENOENT or ESRCH (the process has exited), EACCES or EPERM (no permission).
// Throws base::SystemError for all other errors: a shortage of descriptors or memory says nothing
// about the process.
[[nodiscard]] std::optional<std::string> read_process_file(const std::string& path,
                                                           std::size_t limit = std::size_t{16}
                                                                               << 20);

// Whether ERROR, from a file of /proc, means that the process has exited or access is denied.
[[nodiscard]] bool is_gone_or_denied(int error);

}  // namespace pyinject::procfs
