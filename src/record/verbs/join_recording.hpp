// Adds Python stacks to a `perf record` that another process started, with the BPF engine.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/stop_requests.hpp"
#include "pyinject/weave/weave_flags.hpp"

namespace pyinject::record {

struct JoinOptions {
  base::Pid perf;                // the running perf
  perf::PerfSearch search;       // finds the perf for the build-id cache
  weave::WeaveFlags flags = {};  // OFF_CPU has no effect
};

// Collects stacks until PERF exits or STOP has a request, and adds them to its file when it has
// exited. PERF is not modified, except that its events run a BPF program. Returns the exit status:
// 0, kFailure with a logged reason, or 128 + signal; unless everything succeeded, the file is as
// perf wrote it. Throws base::Error.
[[nodiscard]] int join_recording(const JoinOptions& options, base::Logger& logger,
                                 RecordObserver& observer, targets::StopRequests& stop);

}  // namespace pyinject::record
