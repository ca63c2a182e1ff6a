#include "procfs/cgroup.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::procfs {

std::optional<std::string> parse_cgroup(std::string_view text) {
  for (const auto line : base::split(text, '\n')) {
    if (line.starts_with("0::/")) {
      return std::string{line.substr(4)};
    }
  }
  return std::nullopt;
}

std::optional<std::string> read_cgroup(base::Pid pid) {
  constexpr std::size_t kMost = 65536;
  const auto text = base::read_file(fmt::format("/proc/{}/cgroup", pid.value()), kMost);
  return text ? parse_cgroup(*text) : std::nullopt;
}

std::optional<std::string> read_frozen(base::Pid pid) {
  constexpr std::size_t kMost = 65536;
  const auto cgroup = read_cgroup(pid);
  // The latter where other hierarchies are mounted, too.
  for (const auto* const mount : {"/sys/fs/cgroup/", "/sys/fs/cgroup/unified/"}) {
    const auto directory = mount + cgroup.value_or("");
    const auto events =
        cgroup ? base::read_file(directory + "/cgroup.events", kMost) : std::nullopt;
    if (events && std::ranges::count(base::split(*events, '\n'), "frozen 1") != 0) {
      return directory;
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::procfs
