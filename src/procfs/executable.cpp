#include "procfs/executable.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

namespace pyinject::procfs {

std::optional<std::pair<dev_t, ino_t>> executable_of(base::Pid pid) {
  struct stat facts {};
  if (::stat(fmt::format("/proc/{}/exe", pid.value()).c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return std::pair{facts.st_dev, facts.st_ino};
}

}  // namespace pyinject::procfs
