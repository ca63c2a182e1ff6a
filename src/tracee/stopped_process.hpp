// All threads of a process, stopped: PTRACE_SEIZE and PTRACE_INTERRUPT, never PTRACE_ATTACH (which
// sends a SIGSTOP that others can see).
//
// Seizing stops nothing, so all that can be done before the first interrupt is.
#pragma once

#include "procfs/stat.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "tracee/registers.hpp"
#include "tracee/tracer_thread.hpp"  // IWYU pragma: export

#include <chrono>
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
  bool stopped = false;      // its stop has been waited for
  bool job_control = false;  // it was stopped already, by SIGSTOP or its kin, and stays so
};

// The name of every thread that traces.
inline constexpr const char* kTracerName = "pyinject-tracer";
// Whether TRACER, a TracerPid, is such a thread, of this process or of another perf-pyinject: it
// lets its target go within milliseconds.
[[nodiscard]] bool traces_briefly(base::Pid tracer);

// Why a process could not be stopped. Nothing of it is stopped then.
struct StopFailure {
  // kTracedBriefly: traces_briefly().
  enum class Why { kGone, kDenied, kTraced, kTracedBriefly, kDeadline };
  Why why{};
  base::Tid thread;    // the one it failed on
  std::string detail;  // "ptrace(PTRACE_SEIZE): Operation not permitted", "in state D (vfork)"
};

// Must be made, used and destroyed by one thread, which ends soon afterwards unless everything was
// detached: ptrace(2) ties tracees to the thread that attached, and a thread that could not be
// stopped is detached by the end of that one only. on_tracer_thread() provides it.
class StoppedProcess {
 public:
  // Stops every thread, also those born meanwhile. No signal is lost, whether this succeeds or not.
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
  bool attached_ = false;     // to some thread, since the last release()
  bool all_detached_ = true;  // by PTRACE_DETACH
};

}  // namespace pyinject::tracee
