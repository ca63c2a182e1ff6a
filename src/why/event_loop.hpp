// How long callbacks keep asyncio's event loops from running. Pure.
#pragma once

#include "why/accounting.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace pyinject::why {

// A time in which a loop's thread was in callbacks, and nothing shows that the loop ran.
struct LoopBlock {
  std::uint32_t tid = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::map<std::uint32_t, std::uint64_t> spent = {};  // nanoseconds, by stack
  [[nodiscard]] std::uint64_t length() const { return end - begin; }
};

// The blocks of at least SHORTEST nanoseconds. Of loops in Python only: uvloop has no functions of
// asyncio on its stacks.
[[nodiscard]] std::vector<LoopBlock> loop_blocks(const Recording& recording,
                                                 const Accounts& accounts, std::uint64_t shortest);

}  // namespace pyinject::why
