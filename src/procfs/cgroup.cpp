#include "procfs/cgroup.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

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
  constexpr std::size_t kMost = 16;
  // The latter where other hierarchies are mounted, too.
  for (const std::string mount : {"/sys/fs/cgroup/", "/sys/fs/cgroup/unified/"}) {
    auto cgroup = read_cgroup(pid).value_or("");
    while (!cgroup.empty()) {  // the root has no such file
      const auto frozen = base::read_file(mount + cgroup + "/cgroup.freeze", kMost);
      if (frozen && base::trim(*frozen) == "1") {
        return mount + cgroup;
      }
      const auto slash = cgroup.rfind('/');
      cgroup.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::procfs
