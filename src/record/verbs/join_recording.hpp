// A `perf record` that somebody else has started gets Python stacks, by the second engine.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/weave/weave_flags.hpp"

namespace pyinject::session {

struct JoinOptions {
  base::Pid perf;                // that runs
  perf::PerfSearch search;       // whose build-id cache is used
  weave::WeaveFlags flags = {};  // OFF_CPU has no effect
};

// Collects stacks until PERF ends, or until a signal comes, and puts them into its file when it has
// ended. Nothing is done to PERF but that its events run a program meanwhile. Returns the exit
// status: 0, kFailure with a logged reason, 128 + the signal's number; its file is then as perf
// wrote it unless all was done. Throws base::Error.
[[nodiscard]] int join_recording(const JoinOptions& options, base::Logger& logger,
                                 RecordObserver& observer);

}  // namespace pyinject::session
