// waitpid(2) with a deadline, without busy waiting: the pause of the target is made of these waits.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"

#include <ctime>
#include <optional>

namespace pyinject::tracee {

enum class Waited { kChanged, kNoChild, kDeadline };

// To be made before the pause begins, by the thread that will wait.
class InterruptibleWait {
 public:
  explicit InterruptibleWait(base::Deadline deadline);
  ~InterruptibleWait();
  InterruptibleWait(const InterruptibleWait&) = delete;
  InterruptibleWait& operator=(const InterruptibleWait&) = delete;

  // Waits for a change of a thread that the calling thread traces. STATUS is set on kChanged.
  [[nodiscard]] Waited wait(base::Tid thread, int& status) const;

 private:
  base::Deadline deadline_;
  timer_t timer_{};
};

// The wait status of the ptrace stop that THREAD is in, without taking it. nullopt: it is in none.
[[nodiscard]] std::optional<int> stop_of(base::Tid thread);

}  // namespace pyinject::tracee
