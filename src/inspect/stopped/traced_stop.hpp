// Stops a process with ptrace(2) for a snapshot. Nothing of it is changed.
#pragma once

#include "inspect/process_stop.hpp"
#include "pyinject/base/pid.hpp"
#include "tracee/registers.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <span>

namespace pyinject::inspect {

class TracedStop : public ProcessStop {
 public:
  // Called with the registers of all threads while they are stopped, before the snapshot is taken.
  using OnStop = std::function<void(const std::map<base::Tid, tracee::Registers>& registers)>;
  explicit TracedStop(OnStop on_stop = {}) : on_stop_{std::move(on_stop)} {}

  [[nodiscard]] std::optional<python::Refusal> stop(
      const base::ProcessId& id, std::chrono::nanoseconds& stopped,
      const std::function<bool(std::span<const StoppedThread> threads)>& work) override;

 private:
  OnStop on_stop_;
};

}  // namespace pyinject::inspect
