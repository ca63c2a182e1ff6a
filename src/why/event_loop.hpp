// How long callbacks and tasks keep the event loops of asyncio, uvloop and trio from running, and
// greenlets gevent's. Pure.
#pragma once

#include "why/accounting.hpp"

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace pyinject::why {

// A time in which a loop's thread was in callbacks, and nothing shows that the loop ran.
struct LoopBlock {
  std::uint32_t tid = 0;
  bool hub = false;  // gevent's loop: in greenlets, or in callbacks
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::map<std::uint32_t, std::uint64_t> spent = {};  // nanoseconds, by stack
  [[nodiscard]] std::uint64_t length() const { return end - begin; }
};

// Whether it is a file of trio's event loop.
[[nodiscard]] bool is_of_trio(std::string_view file);
// Whether it is the function in which gevent's event loop runs.
[[nodiscard]] bool is_hub(std::string_view function, std::string_view file);

// The blocks of at least SHORTEST nanoseconds. A loop in C, such as uvloop's, is known by
// asyncio.Runner, which asyncio.run() uses; without that, it is not known.
[[nodiscard]] std::vector<LoopBlock> loop_blocks(const Recording& recording,
                                                 const Accounts& accounts, std::uint64_t shortest);

}  // namespace pyinject::why
