// waitpid(2) with a deadline and without busy waiting: these waits determine how long the target is
// stopped.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"

#include <ctime>
#include <optional>

namespace pyinject::tracee {

enum class Waited { kChanged, kNoChild, kDeadline };

// Create it before the stop, in the thread that will wait.
class InterruptibleWait {
 public:
  explicit InterruptibleWait(base::Deadline deadline);
  ~InterruptibleWait();
  InterruptibleWait(const InterruptibleWait&) = delete;
  InterruptibleWait& operator=(const InterruptibleWait&) = delete;

  // Waits for a state change of a thread traced by the calling thread. Sets STATUS on kChanged.
  [[nodiscard]] Waited wait(base::Tid thread, int& status) const;

 private:
  base::Deadline deadline_;
  timer_t timer_{};
};

// The wait status of THREAD's current ptrace stop; leaves the stop waitable. nullopt: not stopped.
[[nodiscard]] std::optional<int> stop_of(base::Tid thread);

}  // namespace pyinject::tracee
