#include "live/frequent_stacks.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pyinject::live {

namespace {

constexpr std::size_t kMostStacks = 8192;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  hash = (hash ^ word) * kOdd;
  return hash ^ hash >> 29U;
}

}  // namespace

void FrequentStacks::add(const sample::Stack& stack, std::uint64_t task,
                         std::vector<sample::Frame> frames, std::uint64_t count) {
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
}

void FrequentStacks::forget_tasks() {
  for (auto& [hash, known] : stacks_) {
    known.task = 0;
  }
}

bool FrequentStacks::has(const KnownStack& stack, View view, std::uint64_t id) {
  switch (view) {
    case View::kFunctions:
      return id == 0 ? stack.frames.empty()
                     : std::ranges::any_of(stack.frames,
                                           [id](const auto& frame) { return frame.code == id; });
    case View::kLines:
      return id == 0 ? stack.frames.empty()
                     : std::ranges::any_of(
                           stack.frames, [id](const auto& frame) { return line_id(frame) == id; });
    case View::kThreads:
      return thread_id(stack.pid, stack.tid) == id;
    case View::kTasks:
      return stack.task == id;
    case View::kProcesses:
      return stack.pid == id;
  }
  return false;
}

std::vector<sample::Frame> FrequentStacks::most_frequent_with(View view, std::uint64_t id) const {
  const KnownStack* best = nullptr;
  for (const auto& [hash, stack] : stacks_) {
    if (has(stack, view, id) && (best == nullptr || stack.count > best->count)) {
      best = &stack;
    }
  }
  return best == nullptr ? std::vector<sample::Frame>{} : best->frames;
}

}  // namespace pyinject::live
