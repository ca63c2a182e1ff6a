// How much a stack that the sampler has read shows of a sample's Python functions.
#pragma once

#include "bpf/sampler.hpp"
#include "pyinject/perfdata/stack_counts.hpp"

#include <algorithm>
#include <array>

namespace pyinject::bpf {

// Those that stack_kind() returns; samples without a stack are kUnread.
inline constexpr std::array kKindsOfStacks{perfdata::StackKind::kComplete,
                                           perfdata::StackKind::kNoPython,
                                           perfdata::StackKind::kCut, perfdata::StackKind::kUnread};

[[nodiscard]] inline perfdata::StackKind stack_kind(const sample::Stack& stack) {
  using perfdata::StackKind;
  const bool cut = stack.truncated || stack.unreadable;
  if (stack.frames.empty()) {
    return cut ? StackKind::kUnread : StackKind::kNoPython;
  }
  const bool unnamed = std::ranges::any_of(stack.frames, [](const sample::Frame& frame) {
    return frame.code == 0;
  });  // its name was lost
  return unnamed ? StackKind::kUnread : cut ? StackKind::kCut : StackKind::kComplete;
}

}  // namespace pyinject::bpf
