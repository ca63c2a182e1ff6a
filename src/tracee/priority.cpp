#include "priority.hpp"

#include "procfs/load.hpp"

#include <unistd.h>

namespace pyinject::tracee {

namespace {

// Whether there are more runnable threads than processors, not counting this thread.
bool crowded() {
  const auto runnable = procfs::read_runnable_threads();
  return runnable && *runnable - 1 > ::sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

std::optional<int> processor_to_stop_at(const procfs::Stat& first) {
  if (first.real_time || (first.state == 'R' && crowded())) {
    return std::nullopt;
  }
  return first.processor;
}

TracerPriority::TracerPriority(std::optional<int> cpu) {
  if (::sched_getscheduler(0) != SCHED_OTHER) {
    return;  // the user has chosen a priority for this tool
  }
  // The lowest real-time priority is above all ordinary programs.
  const sched_param first{.sched_priority = 1};
  raised_ = ::sched_setscheduler(0, SCHED_FIFO, &first) == 0;
  cpu_set_t before;
  if (!raised_ || !cpu || *cpu < 0 || *cpu >= CPU_SETSIZE ||
      ::sched_getaffinity(0, sizeof before, &before) != 0) {
    return;
  }
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<unsigned>(*cpu), &only);
  if (::sched_setaffinity(0, sizeof only, &only) == 0) {
    cpus_ = before;
  }
}

// Priority first: on this processor, the target waits for this thread to yield.
TracerPriority::~TracerPriority() {
  if (raised_) {
    const sched_param none{.sched_priority = 0};
    ::sched_setscheduler(0, SCHED_OTHER, &none);
  }
  if (cpus_) {
    ::sched_setaffinity(0, sizeof *cpus_, &*cpus_);
  }
}

}  // namespace pyinject::tracee
