#include "python/stacks/frame_walk.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace pyinject::python {

namespace {

constexpr std::size_t kMostFrameBytes = 256;  // of its fixed part, in any version

struct Frame {
  RawFrame raw;
  bool entry = false;
  bool waits = false;         // for a call made by its own evaluator; after 3.13: any call
  bool caller_waits = false;  // required unless it is an entry frame
};

std::optional<Frame> read_frame(const memory::MemoryReader& memory, const StackLayout& layout,
                                base::RemoteAddress address) {
  std::array<std::byte, kMostFrameBytes> bytes;  // NOLINT(*-member-init): read() fills it
  if (address.value() % sizeof(std::uint64_t) != 0 || layout.frame_size > bytes.size() ||
      !memory.read(address, std::span{bytes}.first(layout.frame_size))) {
    return std::nullopt;
  }
  const auto pointer = [&bytes](std::uint64_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  const auto int_at = [&bytes](std::uint64_t offset) {
    std::int32_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  const auto index = int_at(layout.stack_end);
  const auto owner = std::to_integer<std::uint8_t>(bytes.at(layout.owner));
  const bool entry = owner >= layout.owners.first_entry;
  // throw() of a generator that waits for another one, which is C code, links it to the running
  // frame.
  const bool thrown_into = layout.stack_end_is_index && owner == layout.owners.generator;
  const base::RemoteAddress code{pointer(layout.executable) & ~layout.executable_tags};
  base::RemoteAddress instruction{pointer(layout.instruction)};
  if (layout.byte_code_index != 0 && !entry) {
    instruction =
        in_shared_byte_code(memory, layout, code, int_at(layout.byte_code_index), instruction);
  }
  return Frame{.raw = {.address = address,
                       .code = code,
                       .previous = base::RemoteAddress{pointer(layout.previous)},
                       .instruction = instruction},
               .entry = entry,
               .waits = layout.stack_end_is_index ? index >= 0 : pointer(layout.stack_end) != 0,
               .caller_waits = !entry && !thrown_into};
}

std::optional<base::RemoteAddress> innermost(const memory::MemoryReader& memory,
                                             const StackLayout& layout,
                                             base::RemoteAddress thread) {
  auto frame = memory.read_pointer(thread + layout.current_frame);
  if (frame && !frame->is_null() && layout.frame_in_cframe) {
    frame = memory.read_pointer(*frame);
  }
  return frame;
}

}  // namespace

base::RemoteAddress in_shared_byte_code(const memory::MemoryReader& memory,
                                        const StackLayout& layout, base::RemoteAddress code,
                                        std::int32_t index, base::RemoteAddress instruction) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  if (index <= 0) {
    return instruction;  // the first copy is the shared one
  }
  const auto copies = memory.read_pointer(code + layout.thread_byte_code);
  const auto count = copies ? memory.read_value<std::int64_t>(*copies) : std::nullopt;
  const auto copy =
      count && index < *count
          ? memory.read_pointer(*copies + (kWord + kWord * static_cast<std::uint64_t>(index)))
          : std::nullopt;
  return copy ? code + (layout.byte_code + (instruction.value() - copy->value())) : instruction;
}

std::optional<RawStack> walk_frames(const memory::MemoryReader& memory, const StackLayout& layout,
                                    base::RemoteAddress thread, Gaps gaps) {
  auto next = innermost(memory, layout, thread);
  if (!next) {
    return std::nullopt;
  }
  RawStack stack;
  const auto at_gap = [&stack, gaps]() -> std::optional<RawStack> {
    if (gaps == Gaps::kRefuse || stack.frames.empty()) {
      return std::nullopt;
    }
    stack.complete = false;
    return std::move(stack);
  };
  // A circle is detected within two rounds (Brent's method).
  base::RemoteAddress passed;
  bool must_wait = false;
  for (std::size_t steps = 1, remember = 1; !next->is_null(); ++steps) {
    if (*next == passed) {
      return std::nullopt;
    }
    if (steps == remember) {
      passed = *next;
      remember *= 2;
    }
    const auto frame = read_frame(memory, layout, *next);
    if (!frame) {
      return at_gap();
    }
    if (frame->entry) {
      if (!stack.frames.empty()) {
        stack.frames.back().outermost = true;
      }
    } else if (frame->raw.previous.is_null() || frame->raw.code.is_null() ||
               (must_wait && !frame->waits)) {
      // Only an entry frame can be the last one, or have no code. A caller that does not wait for
      // its callee was read at another moment.
      return at_gap();
    } else if (stack.frames.size() == kMostFrames) {
      stack.complete = false;
      return stack;
    } else {
      stack.frames.push_back(frame->raw);
    }
    if (steps > 3 * kMostFrames) {
      return std::nullopt;  // almost nothing but entry frames
    }
    must_wait = frame->caller_waits;
    next = frame->raw.previous;
  }
  return stack;
}

bool same_calls(const RawStack& one, const RawStack& other) {
  return one.complete == other.complete &&
         std::ranges::equal(one.frames, other.frames, &RawFrame::same_call);
}

RawStack outer_part(const RawStack& earlier, const RawStack& later) {
  if (!earlier.complete || !later.complete) {
    return {};
  }
  const auto differing = std::mismatch(
      later.frames.rbegin(), later.frames.rend(), earlier.frames.rbegin(), earlier.frames.rend(),
      [](const RawFrame& one, const RawFrame& other) { return one.same_call(other); });
  return {.frames = {differing.first.base(), later.frames.end()}};
}

}  // namespace pyinject::python
