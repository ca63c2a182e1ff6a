// One recording, from start to end.
//
// For example:
//   record::RecordPlan plan;
//   plan.targets = record::Processes{{pid}};
//   plan.command = {"sleep", "10"};
//   record::RecordObserver nobody;
//   targets::StopSwitch stop;  // any thread may call stop.request()
//   const auto result = record::record(plan, detector, injector, logger, nobody, stop);
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/stop_requests.hpp"

#include <optional>

namespace pyinject::record {

struct RecordResult {
  // The command's; 128 + signal if a request to stop ended the recording; 0 if the targets exited;
  // kFailure with a logged reason.
  int status = kFailure;
  int signal = 0;  // the request that ended it; 0: none
  // nullopt: nothing was recorded. With a status of kFailure: something is missing, as logged.
  std::optional<RecordSummary> summary = {};
};

// Starts perf with its events disabled, activates the targets, enables the events and runs the
// command; then disables the events, switches the targets off, stops perf and collects the map
// files. Ends early when STOP requests it: StopSignals for a command, StopSwitch for a program. A
// program must ignore SIGPIPE: perf may die. A failure of this tool is logged. However it ends, no
// target stays active that was not active before; an error lists each one that could not be
// switched off. With kBpf, and with kAuto if it chooses that engine, DETECTOR and INJECTOR are
// unused.
[[nodiscard]] RecordResult record(const RecordPlan& plan, python::Detector& detector,
                                  python::Injector& injector, base::Logger& logger,
                                  RecordObserver& observer, targets::StopRequests& stop);

}  // namespace pyinject::record
