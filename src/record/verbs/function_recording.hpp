// `record --functions`: every call and return of a Python function, by the probes that the
// interpreter has for it. Stock perf records them; the trampoline is not touched.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/record/record_observer.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::session {

struct FunctionRecording {
  int status = kFailure;           // as that of record()
  std::vector<std::string> files;  // that perf has completed
};

// Of OPTIONS: pids, strict, perf, perf_options, command. Reasons are logged; of OBSERVER
// progress(), stopped() and, of each pid that was looked at, happened() are called. Throws
// base::Error when this tool fails. However it ends, no event of this session is left in tracefs;
// what killed sessions have left there is removed at its begin.
[[nodiscard]] FunctionRecording record_functions(const RecordOptions& options, base::Logger& logger,
                                                 RecordObserver& observer);

}  // namespace pyinject::session
