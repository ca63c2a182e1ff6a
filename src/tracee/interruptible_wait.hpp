// waitpid(2) with a deadline, without busy waiting: the pause of the target is made of these waits.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"

namespace pyinject::tracee {

enum class Waited { kChanged, kNoChild, kDeadline };

// Waits for a change of a thread that the calling thread traces. STATUS is set on kChanged.
[[nodiscard]] Waited wait_interruptibly(base::Tid thread, int& status, base::Deadline deadline);

}  // namespace pyinject::tracee
