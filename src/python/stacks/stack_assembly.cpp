#include "python/stacks/stack_assembly.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::python {

RawStack joined(std::vector<RawStack> stacks) {
  std::erase_if(stacks, [](const RawStack& stack) { return stack.frames.empty(); });
  if (stacks.size() == 1) {
    return std::move(stacks.front());
  }
  struct Group {
    std::vector<RawFrame> frames;
    base::RemoteAddress entry;
  };
  std::vector<Group> groups;
  RawStack result;
  for (const auto& stack : stacks) {
    result.complete = result.complete && stack.complete;
    for (bool first = true; const auto& frame : stack.frames) {
      if (first) {
        groups.emplace_back();
      }
      groups.back().frames.push_back(frame);
      groups.back().entry = frame.previous;
      first = frame.outermost;
    }
  }
  // The C stack grows downwards.
  std::ranges::stable_sort(groups, {}, &Group::entry);
  for (const auto& group : groups) {
    result.frames.insert(result.frames.end(), group.frames.begin(), group.frames.end());
  }
  if (result.frames.size() > kMostFrames) {
    result.frames.resize(kMostFrames);
    result.complete = false;
  }
  return result;
}

ThreadStack assembled(base::Tid tid, const RawStack& stack, const CodeObjects& codes) {
  ThreadStack result{.tid = tid, .frames = {}, .complete = stack.complete};
  result.frames.reserve(stack.frames.size());
  bool shown = false;  // the group has a frame in the result
  for (const auto& frame : stack.frames) {
    const auto* const code = codes.find(frame.code);
    if (code != nullptr && !is_init_cleanup(code->names)) {
      result.frames.push_back({.address = frame.address,
                               .code = frame.code,
                               .previous = frame.previous,
                               .line = codes.line(*code, frame.code, frame.instruction),
                               .outermost = frame.outermost,
                               .code_serial = code->serial});
      shown = true;
    } else if (frame.outermost && shown) {
      result.frames.back().outermost = true;
      result.frames.back().previous = frame.previous;
    }
    shown = shown && !frame.outermost;
  }
  return result;
}

}  // namespace pyinject::python
