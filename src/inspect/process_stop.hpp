// A snapshot while a process is stopped. The stop is made elsewhere: this library cannot stop a
// process.
#pragma once

#include "procfs/blocked_task.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/python/reason.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <variant>

namespace pyinject::inspect {

struct StoppedThread {
  base::Tid tid;
  bool by_signal = false;  // a signal had stopped it before
  // The system call that the stop interrupted; nullopt: it ran.
  std::optional<procfs::BlockedCall> call = {};
};

class ProcessStop {
 public:
  virtual ~ProcessStop() = default;
  ProcessStop() = default;
  ProcessStop(const ProcessStop&) = delete;
  ProcessStop& operator=(const ProcessStop&) = delete;

  // Calls WORK while all threads of the process are stopped, and lets them continue. If WORK
  // returns false, it is repeated a few times, each time with a new stop. STOPPED: length of all
  // stops. A refusal says why the process could not be stopped.
  [[nodiscard]] virtual std::optional<python::Refusal> stop(
      const base::ProcessId& id, std::chrono::nanoseconds& stopped,
      const std::function<bool(std::span<const StoppedThread> threads)>& work) = 0;
};

// take_snapshot() while STOP holds all threads: everything is of one moment. States and system
// calls are those that the stop interrupted. A refusal: why there is no snapshot. LOCALS:
// SnapshotOptions::locals.
[[nodiscard]] std::variant<ProcessSnapshot, python::Refusal> take_snapshot_stopped(
    base::Pid pid, const python::Target* target, ProcessStop& stop, bool locals);

}  // namespace pyinject::inspect
