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

}  // namespace pyinject::procfs
