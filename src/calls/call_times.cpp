#include "calls/call_times.hpp"

#include <algorithm>
#include <iterator>

namespace pyinject::calls {

CallTimes::CallTimes(const CallTrace& trace) : times_(trace.functions.size()) {
  for (std::uint32_t i = 0; i < times_.size(); ++i) {
    times_[i].function = i;
  }
}

CallStep CallTimes::add(const CallEvent& event) {
  switch (event.kind) {
    case CallEvent::Kind::kEntry:
      return enter(threads_[event.tid], event);
    case CallEvent::Kind::kReturn:
      return leave(threads_[event.tid], event);
    case CallEvent::Kind::kThread:
      threads_.erase(event.tid);
      break;
  }
  return {};
}

CallStep CallTimes::enter(Thread& thread, const CallEvent& event) {
  const CallStep step{.depth = thread.stack.size()};
  ++times_[event.function].calls;
  if (event.partner != CallEvent::kNone) {
    thread.stack.push_back({.begin = event.time});
    ++thread.depth[event.function];
  }
  return step;
}

// Pairs are nested: the innermost call returns first.
CallStep CallTimes::leave(Thread& thread, const CallEvent& event) {
  auto& stack = thread.stack;
  if (event.partner == CallEvent::kNone || stack.empty()) {
    return {.depth = stack.size()};
  }
  const Frame frame = stack.back();
  stack.pop_back();
  const bool outermost = --thread.depth[event.function] == 0;
  const std::uint64_t span = event.time - std::min(frame.begin, event.time);
  if (!stack.empty()) {
    stack.back().in_callees += span;
  }
  auto& times = times_[event.function];
  ++times.returned;
  times.own += span - std::min(frame.in_callees, span);
  times.longest = std::max(times.longest, span);
  times.inclusive += outermost ? span : 0;
  return {.depth = stack.size(), .span = span};
}

std::vector<FunctionTimes> CallTimes::result() const {
  std::vector<FunctionTimes> called;
  std::ranges::copy_if(times_, std::back_inserter(called),
                       [](const FunctionTimes& times) { return times.calls > 0; });
  std::ranges::stable_sort(called, [](const FunctionTimes& one, const FunctionTimes& other) {
    return one.own > other.own;
  });
  return called;
}

}  // namespace pyinject::calls
