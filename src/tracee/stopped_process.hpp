// Stops all threads of a process with PTRACE_SEIZE and PTRACE_INTERRUPT, never with PTRACE_ATTACH
// (which sends a SIGSTOP that other processes can see).
//
// Seizing stops nothing, so as much as possible is done before the first interrupt.
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
  bool stopped = false;      // its stop has been reported
  bool job_control = false;  // already stopped by SIGSTOP or similar; stays stopped
};

// Name of all tracer threads.
inline constexpr const char* kTracerName = "pyinject-tracer";
// Whether TRACER, a TracerPid, is such a thread, of this process or of another perf-pyinject, which
// detaches within milliseconds.
[[nodiscard]] bool traces_briefly(base::Pid tracer);

// Why a process could not be stopped. No thread of it stays stopped.
struct StopFailure {
  // kTracedBriefly: traces_briefly(). kTooManyThreads: more than this tool stops.
  enum class Why { kGone, kDenied, kTraced, kTracedBriefly, kTooManyThreads, kDeadline };
  Why why{};
  base::Tid thread;    // the thread that caused the failure
  std::string detail;  // "ptrace(PTRACE_SEIZE): Operation not permitted", "in state D (vfork)"
};

// Create, use and destroy it in one thread, which must exit soon afterwards unless everything was
// detached: ptrace(2) ties tracees to the thread that attached, and only the exit of that thread
// detaches a thread that could not be stopped. on_tracer_thread() provides one.
class StoppedProcess {
 public:
  // Stops every thread, including those that start in the meantime. No signal is lost, whether this
  // succeeds or not. If this tool is killed here, the kernel detaches all threads and they
  // continue. Never stops another process with a reused pid.
  [[nodiscard]] static std::variant<StoppedProcess, StopFailure> stop(const base::ProcessId& id,
                                                                      base::Deadline deadline);

  StoppedProcess(StoppedProcess&& other) noexcept;
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  // Detaches what is still attached. Never throws: threads may have exited.
  ~StoppedProcess();

  [[nodiscard]] const std::vector<StoppedThread>& threads() const { return threads_; }
  [[nodiscard]] base::Pid pid() const { return pid_; }
  // The state just before the stop. The process has not exec'ed since.
  [[nodiscard]] const procfs::Stat& stat() const { return stat_; }

  // Lets all threads continue; returns the time since the first interrupt.
  std::chrono::nanoseconds release();

 private:
  explicit StoppedProcess(base::Pid pid);

  [[nodiscard]] std::optional<StopFailure> seize_all();
  [[nodiscard]] std::optional<StopFailure> seize_new();
  [[nodiscard]] std::optional<StopFailure> stop_from(std::size_t first,
                                                     const InterruptibleWait& wait);
  [[nodiscard]] std::optional<StopFailure> wait_for(std::size_t index,
                                                    const InterruptibleWait& wait);
  [[nodiscard]] std::optional<StopFailure> stop_all(const InterruptibleWait& wait);
  [[nodiscard]] bool all_seen() const;
  [[nodiscard]] bool accounts_for(std::size_t counted) const;

  base::Pid pid_;
  procfs::Stat stat_;
  base::UniqueFd tasks_;                      // /proc/PID/task
  std::unique_ptr<TracerPriority> priority_;  // of the calling thread, during the stop
  std::chrono::steady_clock::time_point since_;
  std::vector<StoppedThread> threads_;
  std::set<base::Tid> seen_;
  std::vector<base::Tid> ended_;  // before they could be seized, of those listed last
  bool attached_ = false;         // to any thread, since the last release()
  bool all_detached_ = true;      // by PTRACE_DETACH
};

// Detaches all that the calling thread still traces as soon as it stops, without losing a signal.
// False: something has not stopped by DEADLINE.
[[nodiscard]] bool detach_remaining(base::Deadline deadline);

}  // namespace pyinject::tracee
