// `record --functions`: every call and return of a Python function, from the interpreter's own
// probes. Stock perf records them; the trampoline is not touched.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/stop_requests.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::record {

struct FunctionRecording {
  int status = kFailure;           // as that of record()
  std::vector<std::string> files;  // completed by perf
};

// Uses of PLAN: pids, strict, perf, perf_options, command. Logs reasons; calls progress() and
// stopped() of OBSERVER, and on_event() for each pid examined. Throws base::Error if this tool
// fails. However it ends, no event of this session is left in tracefs; events left by killed
// sessions are removed at the start.
[[nodiscard]] FunctionRecording record_functions(const RecordPlan& plan, base::Logger& logger,
                                                 RecordObserver& observer,
                                                 targets::StopRequests& stop);

}  // namespace pyinject::record
