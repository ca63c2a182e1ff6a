#include "live/frequent_stacks.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pyinject::live {

namespace {

constexpr std::size_t kMostStacks = 8192;
constexpr std::size_t kMostC = 16;  // of a stack

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  hash = (hash ^ word) * kOdd;
  return hash ^ hash >> 29U;
}

}  // namespace

void FrequentStacks::add(const sample::Stack& stack, std::uint64_t task,
                         std::vector<sample::Frame> frames, std::uint64_t count,
                         std::uint64_t c_function) {
  std::uint64_t hash = mix(mix(stack.pid, stack.tid), task);
  for (const auto& frame : frames) {
    hash = mix(hash, line_id(frame));
  }
  if (stacks_.size() >= kMostStacks && !stacks_.contains(hash)) {
    std::erase_if(stacks_, [](const auto& known) { return known.second.count <= 1; });
    if (stacks_.size() >= kMostStacks) {
      stacks_.clear();
    }
  }
  auto& known = stacks_[hash];
  if (known.count == 0) {
    known.frames = std::move(frames);
    known.pid = stack.pid;
    known.tid = stack.tid;
    known.task = task;
  }
  known.count += count;
  auto& known_c = known.c_functions;
  if (c_function != 0 && known_c.size() < kMostC &&
      std::ranges::find(known_c, c_function) == known_c.end()) {
    known_c.push_back(c_function);
  }
}

void FrequentStacks::forget_tasks() {
  for (auto& [hash, known] : stacks_) {
    known.task = 0;
  }
}

bool FrequentStacks::has(const KnownStack& stack, View view, const Matches& matches) {
  const auto in_frames = [&](auto id_of) {
    return stack.frames.empty() ? matches(0)
                                : std::ranges::any_of(stack.frames, [&](const auto& frame) {
                                    return matches(id_of(frame));
                                  });
  };
  switch (view) {
    case View::kFunctions:
      return in_frames([](const sample::Frame& frame) { return frame.code; });
    case View::kLines:
      return in_frames(line_id);
    case View::kC:
      return std::ranges::any_of(stack.c_functions, matches);
    case View::kThreads:
      return matches(thread_id(stack.pid, stack.tid));
    case View::kTasks:
      return matches(stack.task);
    case View::kProcesses:
      return matches(stack.pid);
  }
  return false;
}

std::vector<sample::Frame> FrequentStacks::most_frequent_with(View view,
                                                              const Matches& matches) const {
  const KnownStack* best = nullptr;
  for (const auto& [hash, stack] : stacks_) {
    if ((best == nullptr || stack.count > best->count) && has(stack, view, matches)) {
      best = &stack;
    }
  }
  return best == nullptr ? std::vector<sample::Frame>{} : best->frames;
}

}  // namespace pyinject::live
