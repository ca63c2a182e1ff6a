// Files of /proc that say something of one process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace pyinject::procfs {

// nullopt: errno is ENOENT or ESRCH (the process has gone), EACCES or EPERM (it may not be read).
// Throws base::SystemError for everything else: a shortage of descriptors or memory says nothing
// about the process.
[[nodiscard]] std::optional<std::string> read_process_file(const std::string& path,
                                                           std::size_t limit = std::size_t{16}
                                                                               << 20);

// ERROR, of a file of /proc, says that its process has gone, or that it may not be read.
[[nodiscard]] bool is_gone_or_denied(int error);

}  // namespace pyinject::procfs
