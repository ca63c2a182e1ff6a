// The tracer goes first while its target stands still.
#pragma once

#include "procfs/stat.hpp"

#include <optional>

#include <sched.h>

namespace pyinject::tracee {

// Gives the calling thread real-time priority, and moves it to CPU; takes both back at its end.
//
// Without it other programs' time slices (some ms each) come between the stop and its end, on every
// machine that has something to do. On the target's own processor nothing has to be woken up on
// another one, which takes longer than all that is done in the stop. Where real-time priority is
// not allowed (it needs CAP_SYS_NICE or RLIMIT_RTPRIO) nothing is done: without the priority a
// thread that may run on one processor only would wait for it.
class TracerPriority {
 public:
  explicit TracerPriority(std::optional<int> cpu);
  ~TracerPriority();
  TracerPriority(const TracerPriority&) = delete;
  TracerPriority& operator=(const TracerPriority&) = delete;

 private:
  bool raised_ = false;
  std::optional<cpu_set_t> cpus_;  // where it might run before
};

// The processor of the target whose first thread is FIRST, where it is of use to be there.
//
// A real-time program would not make room for us. A thread that runs while others wait for its
// processor would lose it to one of those when we come, and stand still until it is its turn again
// (1 to 3 ms instead of 70 us, median).
[[nodiscard]] std::optional<int> processor_to_stop_at(const procfs::Stat& first);

}  // namespace pyinject::tracee
