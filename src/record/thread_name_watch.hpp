// Reads the names of the targets' threads while they are recorded, where the kernel does not have
// them (python/objects/thread_comms.hpp).
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/targets/manager.hpp"
#include "python/objects/thread_comms.hpp"
#include "weave/comm_history.hpp"

#include <ctime>
#include <map>
#include <memory>
#include <optional>

namespace pyinject::record {

class ThreadNameWatch {
 public:
  // CLOCK: that of the recording; nullopt: unreadable.
  ThreadNameWatch(base::Logger& logger, std::optional<clockid_t> clock)
      : logger_{logger}, clock_{clock} {}

  // Reads the names of TARGETS, without a stop. Takes up to 100 ms; targets for which there is no
  // time left come first in the next call.
  void look(const targets::ActiveTargets& targets);
  // The same, unless this would take more than half a percent of a processor.
  void look_again(const targets::ActiveTargets& targets);

  [[nodiscard]] weave::CommHistory& history() { return history_; }

 private:
  struct Watched {
    std::shared_ptr<const targets::ActiveTarget> active;
    std::optional<python::ThreadComms> comms;
  };
  void read(const std::shared_ptr<const targets::ActiveTarget>& active);

  base::Logger& logger_;
  std::optional<clockid_t> clock_;
  std::map<base::Pid, Watched> watched_;
  base::Pid latest_;  // the target that was read last
  base::Deadline::Clock::time_point next_;
  weave::CommHistory history_;
};

}  // namespace pyinject::record
