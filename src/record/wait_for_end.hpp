// The one place where a recording waits while events are enabled.
#pragma once

#include "perf/perf_process.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/targets/stop_requests.hpp"
#include "targets/late_arrivals.hpp"
#include "targets/target_watch.hpp"

#include <cstddef>
#include <functional>
#include <optional>

namespace pyinject::record {

enum class End { kCommand, kSignal, kTime, kTargets, kPerf };

struct WaitSources {
  perf::PerfProcess& perf;
  targets::StopRequests& requests;
  base::Child* command;  // nullptr: none
  targets::TargetWatch& targets;
  bool targets_matter = true;                 // end when all targets have exited
  std::function<void()> on_tick;              // twice a second
  targets::LateArrivals* arrivals = nullptr;  // null: none
  std::optional<base::Deadline> until;
};

struct EndOfRecording {
  End end{};
  int signal = 0;  // kSignal
};

[[nodiscard]] EndOfRecording wait_for_end(WaitSources& sources);

// With a command that is the target: waits until the command exits, whatever else happens. Forwards
// signals to the command unless the terminal has already sent them to it.
[[nodiscard]] EndOfRecording wait_for_launched(WaitSources& sources, base::Logger& logger);

// Exit status of a recording that perf completed. TARGETS: number of recorded targets.
[[nodiscard]] int status_after(EndOfRecording end, base::Child* command, std::size_t targets,
                               base::Logger& logger);

}  // namespace pyinject::record
