#include "procfs/executable.hpp"

#include "base/file.hpp"

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

std::string own_executable() {
  const std::string link = "/proc/self/exe";
  const auto path = base::read_link(link);
  struct stat named {};
  struct stat running {};
  const bool same = path && ::stat(path->c_str(), &named) == 0 &&
                    ::stat(link.c_str(), &running) == 0 && named.st_dev == running.st_dev &&
                    named.st_ino == running.st_ino;
  return same ? *path : link;  // a process is named after the path
}

}  // namespace pyinject::procfs
