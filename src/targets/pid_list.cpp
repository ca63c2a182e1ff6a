#include "targets/pid_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace pyinject::targets {

std::string list_pids(const std::vector<base::Pid>& pids) {
  constexpr std::size_t kMostListed = 3;
  std::string text = pids.size() == 1 ? "pid" : "pids";
  for (std::size_t i = 0; i < std::min(pids.size(), kMostListed); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",", pids[i].value());
  }
  return pids.size() > kMostListed ? fmt::format("{} and {} more", text, pids.size() - kMostListed)
                                   : text;
}

}  // namespace pyinject::targets
