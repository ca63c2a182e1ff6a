// The BPF program at perf's events, as the start of perf needs to know it.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <span>

namespace pyinject::record {

class EventProgram {
 public:
  virtual ~EventProgram() = default;
  EventProgram() = default;
  EventProgram(const EventProgram&) = delete;
  EventProgram& operator=(const EventProgram&) = delete;

  // Whether threads have inherited events without the program, as those do that start after perf
  // has opened its events and before the last attach. Their starter can have got these events, too:
  // the kernel swaps them, if it switches from one to the other.
  [[nodiscard]] virtual bool misses_newborn_threads() const = 0;
  // How many threads and processes the recorded ones have started so far.
  [[nodiscard]] virtual std::uint64_t births() const = 0;
  // Whether perf may record the whole system while the program drops everything but PIDS and the
  // processes they fork: samples of events that accept no program are not filtered in the kernel.
  [[nodiscard]] virtual bool takes_all_events() const = 0;
  // Call it before each start of such a perf.
  virtual void record_only(std::span<const base::Pid> pids) = 0;
};

}  // namespace pyinject::record
