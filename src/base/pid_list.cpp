#include "base/pid_list.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::base {

std::string list_pids(std::span<const Pid> pids, std::size_t count) {
  std::string text = count == 1 ? "pid" : "pids";
  const auto listed = pids.first(std::min(pids.size(), kMostListedPids));
  for (const auto& pid : listed) {
    text += fmt::format("{} {}", &pid == listed.data() ? "" : ",", pid.value());
  }
  return count > listed.size() ? fmt::format("{} and {} more", text, count - listed.size()) : text;
}

}  // namespace pyinject::base
