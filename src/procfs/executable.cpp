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

namespace {

constexpr const char* kOwnLink = "/proc/self/exe";

}  // namespace

std::optional<std::string> own_path() {
  auto path = base::read_link(kOwnLink);
  struct stat named {};
  struct stat running {};
  const bool same = path && ::stat(path->c_str(), &named) == 0 && ::stat(kOwnLink, &running) == 0 &&
                    named.st_dev == running.st_dev && named.st_ino == running.st_ino;
  return same ? std::move(path) : std::nullopt;
}

std::string own_executable() {
  return own_path().value_or(kOwnLink);  // a process is named after the path
}

}  // namespace pyinject::procfs
