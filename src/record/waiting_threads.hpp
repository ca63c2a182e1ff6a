// Threads that are already waiting when a recording starts (--off-cpu): perf samples a wait when it
// starts, and so misses these.
#pragma once

#include "procfs/blocked_task.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"
#include "weave/waits.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pyinject::record {

// Stops nothing: reads everything while the processes run, and drops threads that have run in the
// meantime.
class WaitingThreads {
 public:
  explicit WaitingThreads(base::Logger& logger);

  // Call it when the events have been enabled: reads the threads of TARGETS, with their Python
  // stacks, and of OTHERS. Takes at most half a second: the rest is only counted. CLOCK: that of
  // the recording; nullopt: unreadable.
  void look(std::span<const python::Target* const> targets, std::span<const base::Pid> others,
            std::optional<clockid_t> clock);
  // Call it before the events are disabled: finds the threads that have not run since look().
  void look_again();

  // Call it after look_again(). Null: no thread waited.
  [[nodiscard]] weave::Waits* waits();
  // Warns about threads that could not be read.
  void warn() const;

 private:
  struct Seen {
    base::Pid pid;
    base::Tid tid;
    std::uint64_t switches = 0;
    std::vector<procfs::KernelFrame> kernel;
  };
  using Stacks = std::map<base::Tid, sample::Stack>;

  void look_at(base::Pid pid, const python::Target* target, std::optional<clockid_t> clock);
  [[nodiscard]] std::vector<Seen> waiting_threads(base::Pid pid);
  [[nodiscard]] bool read_place(Seen& thread, weave::WaitingThread& waiting);
  [[nodiscard]] Stacks python_stacks(const python::Target& target, std::span<const Seen> threads);
  [[nodiscard]] std::uint64_t number_of(base::Pid pid, std::uint64_t serial);
  void copy_stack(weave::WaitingThread& thread);
  void find_kernel_functions();

  base::Logger& logger_;
  std::shared_ptr<base::RecordingBudget> budget_;
  base::Deadline deadline_;
  weave::Waits waits_;
  std::vector<Seen> seen_;  // one for each of WAITS_
  std::map<std::pair<base::Pid, std::uint64_t>, std::uint64_t> codes_;
  bool found_ = false;              // the kernel's functions
  std::size_t not_looked_at_ = 0;   // threads skipped for lack of time or memory
  std::size_t only_python_ = 0;     // threads read only in part for lack of time
  std::size_t without_python_ = 0;  // threads with a Python stack that could not be read
};

}  // namespace pyinject::record
