// Stops a process for as long as some work takes.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/reason.hpp"
#include "tracee/stopped_process.hpp"

#include <chrono>
#include <functional>
#include <optional>

namespace pyinject::python {

struct AfterStop {
  std::optional<Refusal> refusal;
  bool again = false;  // repeat the work with a new stop
};

// Stops the process, runs WORK and lets the process continue, in a separate thread. A stop that
// takes too long is abandoned and retried until DEADLINE: a thread in state D must not keep the
// others stopped. STOPPED: length of the last stop.
[[nodiscard]] std::optional<Refusal> while_stopped(
    const base::ProcessId& id, base::Deadline deadline, std::chrono::nanoseconds& stopped,
    const std::function<AfterStop(const tracee::StoppedProcess&)>& work);

// The refusal for a process that has exited in the meantime.
[[nodiscard]] Refusal exited();

}  // namespace pyinject::python
