#include "procfs/read_process_file.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"

#include <cerrno>

namespace pyinject::procfs {

bool is_gone_or_denied(int error) {
  return error == ENOENT || error == ESRCH || error == EACCES || error == EPERM;
}

std::optional<std::string> read_process_file(const std::string& path, std::size_t limit) {
  auto text = base::read_file(path, limit);
  if (!text && !is_gone_or_denied(errno)) {
    throw base::SystemError{"cannot read " + path, errno};
  }
  return text;
}

}  // namespace pyinject::procfs
