#include "priority.hpp"

namespace pyinject::tracee {

TracerPriority::TracerPriority(std::optional<int> cpu) {
  if (::sched_getscheduler(0) != SCHED_OTHER) {
    return;  // somebody has chosen a priority for this tool
  }
  // The lowest of its kind: enough to be before every ordinary program.
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

// The priority first: on its own processor the target waits for this thread to give way.
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
