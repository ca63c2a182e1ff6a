// Gives the tracer priority while its target is stopped.
#pragma once

#include "procfs/stat.hpp"

#include <optional>

#include <sched.h>

namespace pyinject::tracee {

// Gives the calling thread real-time priority and moves it to CPU; the destructor undoes both.
//
// Without priority, time slices of other programs (some ms each) prolong the stop on every busy
// machine. On the target's own processor, no other processor has to be woken, which would take
// longer than all the work during the stop. If real-time priority is not permitted (it needs
// CAP_SYS_NICE or RLIMIT_RTPRIO), nothing is done: without the priority, a thread restricted to one
// processor would have to wait for it.
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

// The processor of the target with the first thread FIRST; nullopt: running there has no advantage.
//
// A real-time program would not yield. A running thread on a processor that others wait for would
// lose the processor to one of those when the tracer arrives, and would be stopped until its next
// turn (1 to 3 ms instead of 70 us, median).
[[nodiscard]] std::optional<int> processor_to_stop_at(const procfs::Stat& first);

}  // namespace pyinject::tracee
