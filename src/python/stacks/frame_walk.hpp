// From a thread state along its frames. Pure: any memory in, values out.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/stack_layout.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace pyinject::python {

struct RawFrame {
  base::RemoteAddress address;
  base::RemoteAddress code;
  base::RemoteAddress previous;
  base::RemoteAddress instruction;
  bool outermost = false;  // of its group: PREVIOUS is an entry frame

  // The same call: it may have got further.
  [[nodiscard]] bool same_call(const RawFrame& other) const {
    return address == other.address && code == other.code && previous == other.previous &&
           outermost == other.outermost;
  }
};

struct RawStack {
  std::vector<RawFrame> frames;  // innermost first, without entry frames
  bool complete = true;          // false: there are more than kMostFrames
};

inline constexpr std::size_t kMostFrames = 4096;

// nullopt: what is there is no stack (any more).
[[nodiscard]] std::optional<RawStack> walk_frames(const memory::MemoryReader& memory,
                                                  const StackLayout& layout,
                                                  base::RemoteAddress thread);

// Each frame is the same call in both.
[[nodiscard]] bool same_calls(const RawStack& one, const RawStack& other);

// The outermost frames that are the same calls in both, as LATER has them. None, if one of the
// stacks is not complete.
[[nodiscard]] RawStack outer_part(const RawStack& earlier, const RawStack& later);

}  // namespace pyinject::python
