// All threads of a process, stopped: PTRACE_SEIZE and PTRACE_INTERRUPT, never PTRACE_ATTACH (which
// sends a SIGSTOP that others can see).
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/tracee/registers.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::tracee {

struct StoppedThread {
  base::Tid tid;
  bool stopped = false;
  bool job_control = false;  // it was stopped already, by SIGSTOP or its kin, and stays so
};

// Why a process could not be stopped. Nothing of it is stopped then.
struct StopFailure {
  enum class Why { kGone, kDenied, kTraced, kDeadline };
  Why why{};
  base::Tid thread;    // the one it failed on
  std::string detail;  // "ptrace(PTRACE_SEIZE): Operation not permitted", "in state D (vfork)"
};

// Must be made, used and destroyed by one thread: ptrace(2) ties tracees to the thread that
// attached.
class StoppedProcess {
 public:
  // Stops every thread, also those born meanwhile. A thread that is about to get a signal gets it.
  // If we are killed here the kernel detaches all threads and they run on.
  [[nodiscard]] static std::variant<StoppedProcess, StopFailure> stop(base::Pid pid,
                                                                      base::Deadline deadline);

  StoppedProcess(StoppedProcess&& other) noexcept;
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  // Detaches what is still attached. Never throws: a thread that has gone is fine.
  ~StoppedProcess();

  [[nodiscard]] const std::vector<StoppedThread>& threads() const { return threads_; }
  [[nodiscard]] base::Pid pid() const { return pid_; }

  // Lets all threads run on, and says how long the first of them had stood still.
  std::chrono::nanoseconds release();

 private:
  StoppedProcess(base::Pid pid, std::chrono::steady_clock::time_point since)
      : pid_{pid}, since_{since} {}

  [[nodiscard]] bool attach_new(std::optional<StopFailure>& failure);
  [[nodiscard]] std::optional<StopFailure> wait_for(std::size_t index, base::Deadline deadline);

  base::Pid pid_;
  std::chrono::steady_clock::time_point since_;
  std::vector<StoppedThread> threads_;
  std::set<base::Tid> seen_;
};

// Runs WORK on a thread of its own and waits for it. When that thread ends the kernel detaches
// whatever it still traces, also a thread that could not be stopped in time and therefore cannot be
// detached explicitly (kernel exit_ptrace()). Exceptions of WORK are passed on.
void on_tracer_thread(const std::function<void()>& work);

}  // namespace pyinject::tracee
