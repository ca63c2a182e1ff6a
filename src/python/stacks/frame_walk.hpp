// Walks the frames of a thread state. Pure: any memory in, values out.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/stack_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pyinject::python {

struct RawFrame {
  base::RemoteAddress address;
  base::RemoteAddress code;
  base::RemoteAddress previous;
  base::RemoteAddress instruction;
  bool outermost = false;  // of its group: PREVIOUS is an entry frame

  // Same call; the instruction may differ.
  [[nodiscard]] bool same_call(const RawFrame& other) const {
    return address == other.address && code == other.code && previous == other.previous &&
           outermost == other.outermost;
  }
};

struct RawStack {
  std::vector<RawFrame> frames;  // innermost first, without entry frames
  // False: there are more than kMostFrames, or the memory does not hold them (Gaps::kCut).
  bool complete = true;
};

inline constexpr std::size_t kMostFrames = 16384;

// What is done if a frame is not in the memory.
enum class Gaps {
  kRefuse,  // the stack has changed
  kCut,     // the stack ends there: of a core file, parts are missing
};

// nullopt: the memory does not hold a stack (any more).
[[nodiscard]] std::optional<RawStack> walk_frames(const memory::MemoryReader& memory,
                                                  const StackLayout& layout,
                                                  base::RemoteAddress thread,
                                                  Gaps gaps = Gaps::kRefuse);

// Free-threaded builds from 3.14 on: the address in CODE's own byte code of INSTRUCTION, which is
// in the copy with INDEX (StackLayout::byte_code_index). INSTRUCTION itself if the copy is not in
// the memory.
[[nodiscard]] base::RemoteAddress in_shared_byte_code(const memory::MemoryReader& memory,
                                                      const StackLayout& layout,
                                                      base::RemoteAddress code, std::int32_t index,
                                                      base::RemoteAddress instruction);

// Whether all frames are the same calls.
[[nodiscard]] bool same_calls(const RawStack& one, const RawStack& other);

// The outermost frames that are the same calls in both, as in LATER. Empty if one of the stacks is
// incomplete.
[[nodiscard]] RawStack outer_part(const RawStack& earlier, const RawStack& later);

}  // namespace pyinject::python
