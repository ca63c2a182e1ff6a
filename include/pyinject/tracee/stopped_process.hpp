// All threads of a process, stopped: PTRACE_SEIZE and PTRACE_INTERRUPT, never PTRACE_ATTACH (which
// sends a SIGSTOP that others can see).
//
// Seizing stops nothing, so all that can be done before the first interrupt is.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/procfs/stat.hpp"
#include "pyinject/tracee/registers.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::tracee {

class InterruptibleWait;
class TracerPriority;

struct StoppedThread {
  base::Tid tid;
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
  // If we are killed here the kernel detaches all threads and they run on. What is stopped is the
  // process ID and no other that was given its pid.
  [[nodiscard]] static std::variant<StoppedProcess, StopFailure> stop(const base::ProcessId& id,
                                                                      base::Deadline deadline);

  StoppedProcess(StoppedProcess&& other) noexcept;
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  // Detaches what is still attached. Never throws: a thread that has gone is fine.
  ~StoppedProcess();

  [[nodiscard]] const std::vector<StoppedThread>& threads() const { return threads_; }
  [[nodiscard]] base::Pid pid() const { return pid_; }
  // As it was just before the stop. It has not executed another program since.
  [[nodiscard]] const procfs::Stat& stat() const { return stat_; }

  // Lets all threads run on, and says how long it was from the first interrupt to here.
  std::chrono::nanoseconds release();

 private:
  explicit StoppedProcess(base::Pid pid);

  [[nodiscard]] std::optional<StopFailure> seize_all();
  [[nodiscard]] std::optional<StopFailure> seize_new();
  [[nodiscard]] std::optional<StopFailure> stop_from(std::size_t first,
                                                     const InterruptibleWait& wait);
  [[nodiscard]] std::optional<StopFailure> wait_for(std::size_t index,
                                                    const InterruptibleWait& wait);
  [[nodiscard]] bool all_seen() const;

  base::Pid pid_;
  procfs::Stat stat_;
  base::UniqueFd tasks_;                      // /proc/PID/task
  std::unique_ptr<TracerPriority> priority_;  // of this thread, while the process stands
  std::chrono::steady_clock::time_point since_;
  std::vector<StoppedThread> threads_;
  std::set<base::Tid> seen_;
};

// Runs WORK on a thread of its own and waits for it. When that thread ends the kernel detaches
// whatever it still traces, also a thread that could not be stopped in time and therefore cannot be
// detached explicitly (kernel exit_ptrace()). Exceptions of WORK are passed on.
void on_tracer_thread(const std::function<void()>& work);

}  // namespace pyinject::tracee
