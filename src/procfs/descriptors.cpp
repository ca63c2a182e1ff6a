#include "procfs/descriptors.hpp"

#include "base/file.hpp"
#include "procfs/numbered_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <fcntl.h>

namespace pyinject::procfs {

std::string descriptor_path(base::Pid pid, int number) {
  return fmt::format("/proc/{}/fd/{}", pid.value(), number);
}

std::string own_descriptor_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

std::optional<std::vector<int>> list_descriptors(base::Pid pid) {
  std::vector<int> numbers;
  const int error = for_each_number(fmt::format("/proc/{}/fd", pid.value()),
                                    [&numbers](int number) { numbers.push_back(number); });
  if (error != 0) {
    errno = error;
    return std::nullopt;
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::optional<std::string> read_descriptor_link(base::Pid pid, int number) {
  return base::read_link(descriptor_path(pid, number));
}

std::optional<std::string> read_own_descriptor_link(int fd) {
  return base::read_link(own_descriptor_path(fd));
}

std::optional<struct stat> stat_descriptor(base::Pid pid, int number) {
  struct stat facts {};
  if (::stat(descriptor_path(pid, number).c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return facts;
}

base::UniqueFd open_descriptor(base::Pid pid, int number, int flags) {
  return base::UniqueFd{::open(descriptor_path(pid, number).c_str(), flags | O_CLOEXEC)};
}

}  // namespace pyinject::procfs
