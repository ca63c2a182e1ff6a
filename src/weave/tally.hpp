// What the parts of a weave count.
#pragma once

#include "pyinject/weave/weave_summary.hpp"

#include <cstdint>
#include <map>
#include <utility>

namespace pyinject::weave {

struct Tally {
  WeaveSummary summary;
  std::map<std::pair<std::uint32_t, Limit>, std::uint64_t> dropped;  // by pid

  void drop(std::uint32_t pid, Limit limit, std::uint64_t count = 1) {
    dropped[{pid, limit}] += count;
  }
};

}  // namespace pyinject::weave
