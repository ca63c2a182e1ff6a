// Accounts for the wall time of each thread of a recording. Pure.
#pragma once

#include "pyinject/sample/states.hpp"
#include "why/groups.hpp"
#include "why/recording.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace pyinject::why {

// Each nanosecond of a thread belongs to exactly one use.
using Times = std::array<std::uint64_t, sample::kUses>;  // nanoseconds

// One time off the CPU.
struct Wait {
  std::uint32_t tid = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Use use = Use::kUnknown;
  sample::Gil gil = sample::Gil::kUnknown;  // kHeld: it kept the GIL meanwhile
  std::uint32_t stack = 0;
  std::uint32_t place = 0;    // a kernel function
  std::uint32_t object = 0;   // the class of a Python object; 0: unknown
  std::uint32_t awaited = 0;  // as in Sighting, by one during the wait; 0: unknown
  std::uint32_t waker = 0;    // the thread that ended it; 0: not known
  std::uint32_t waker_stack = 0;
  [[nodiscard]] std::uint64_t length() const { return end - begin; }
};

// One sample on a CPU.
struct Sample {
  std::uint32_t tid = 0;
  std::uint64_t time = 0;
  Use use = Use::kUnknown;
  sample::Gil gil = sample::Gil::kUnknown;
  std::uint32_t stack = 0;
  std::uint32_t place = 0;  // a kernel function, or a C function or its file
  double weight = 0;        // nanoseconds that it stands for
  perfdata::StackKind kind = perfdata::StackKind::kUnread;
};

struct ThreadAccount {
  std::uint64_t wall = 0;  // from its start, or that of the recording, to its end
  std::uint64_t on_cpu = 0;
  std::uint64_t samples = 0;
  std::uint64_t switches = 0;
  Times times{};  // they add up to WALL
};

// A thread called epoll_wait(2) or the like, as an event loop does in each round.
struct Poll {
  std::uint32_t tid = 0;
  std::uint64_t time = 0;
};

struct Accounts {
  std::map<std::uint32_t, ThreadAccount> threads;  // by tid; of those with some time
  Groups groups;                                   // of these threads
  std::vector<Wait> waits;                         // ascending by tid, then by time
  std::vector<Sample> samples;                     // the same
  std::vector<Poll> polls;                         // the same
  perfdata::StackCounts kinds;                     // of the stacks of SAMPLES
};

// The stack of an event at TIME, of those of its thread; nullptr: none. STACKS: in order of time.
[[nodiscard]] const PythonStack* stack_at(std::span<const PythonStack> stacks, std::uint64_t time);

// Sorts the parts of RECORDING.
[[nodiscard]] Accounts account(Recording& recording);

}  // namespace pyinject::why
