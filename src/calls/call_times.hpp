// From pairs of calls and returns to the times of functions.
#pragma once

#include "calls/call_trace.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pyinject::calls {

// Times are of calls that have returned in the recording, in nanoseconds.
struct FunctionTimes {
  std::uint32_t function = 0;   // in CallTrace::functions
  std::uint64_t calls = 0;      // entries
  std::uint64_t returned = 0;   // of these calls
  std::uint64_t inclusive = 0;  // of recursive ones the outermost's
  std::uint64_t own = 0;        // without what was called from it
  std::uint64_t longest = 0;
};

// What one event means, for a timeline.
struct CallStep {
  std::size_t depth = 0;   // calls around it in its thread that return in the recording
  std::uint64_t span = 0;  // of a return with its entry: the time in between
};

// To be told all events of a trace, which pair_calls() has seen, in their order.
class CallTimes {
 public:
  explicit CallTimes(const CallTrace& trace);

  CallStep add(const CallEvent& event);

  // Those that were called, the largest own time first.
  [[nodiscard]] std::vector<FunctionTimes> result() const;

 private:
  struct Frame {
    std::uint64_t begin = 0;
    std::uint64_t in_callees = 0;
  };
  struct Thread {
    std::vector<Frame> stack;
    std::unordered_map<std::uint32_t, std::size_t> depth;  // how often FUNCTION is in it
  };

  CallStep enter(Thread& thread, const CallEvent& event);
  CallStep leave(Thread& thread, const CallEvent& event);

  std::vector<FunctionTimes> times_;
  std::unordered_map<std::uint32_t, Thread> threads_;
};

}  // namespace pyinject::calls
