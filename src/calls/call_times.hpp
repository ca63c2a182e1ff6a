// Computes the times of functions from pairs of calls and returns.
#pragma once

#include "calls/call_trace.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pyinject::calls {

// Times, in nanoseconds, include only calls that returned during the recording.
struct FunctionTimes {
  std::uint32_t function = 0;   // in CallTrace::functions
  std::uint64_t calls = 0;      // entries
  std::uint64_t returned = 0;   // of these calls
  std::uint64_t inclusive = 0;  // only the outermost of recursive calls
  std::uint64_t own = 0;        // without callees
  std::uint64_t longest = 0;
};

// Position of an event in a timeline.
struct CallStep {
  std::size_t depth = 0;   // enclosing calls in its thread that return during the recording
  std::uint64_t span = 0;  // for a return with its entry: the time between them
};

// Add all events of a trace, paired by pair_calls(), in order.
class CallTimes {
 public:
  explicit CallTimes(const CallTrace& trace);

  CallStep add(const CallEvent& event);

  // Functions that were called, largest own time first.
  [[nodiscard]] std::vector<FunctionTimes> result() const;

 private:
  struct Frame {
    std::uint64_t begin = 0;
    std::uint64_t in_callees = 0;
  };
  struct Thread {
    std::vector<Frame> stack;
    std::unordered_map<std::uint32_t, std::size_t> depth;  // number of calls of FUNCTION in STACK
  };

  CallStep enter(Thread& thread, const CallEvent& event);
  CallStep leave(Thread& thread, const CallEvent& event);

  std::vector<FunctionTimes> times_;
  std::unordered_map<std::uint32_t, Thread> threads_;
};

}  // namespace pyinject::calls
