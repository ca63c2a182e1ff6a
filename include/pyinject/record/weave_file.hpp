// Post-processes an existing perf.data file, so that it has complete stacks.
//
// For example:
//   record::RecordObserver nobody;
//   const int status =
//       record::weave_file({.input = "raw.data", .output = "perf.data"}, logger, nobody);
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/record_observer.hpp"

#include <functional>
#include <string>

namespace pyinject::record {

struct WeaveFileOptions {
  std::string input;
  std::string output;  // may be INPUT
  perf::PerfSearch perf;
  bool python_only = false;  // as in WeaveFlags
  // Only adds the names that INPUT holds to the build-id cache of PERF, for another user or machine
  // than the one that recorded; INPUT stays as it is, OUTPUT is not used.
  bool only_names = false;
  std::function<bool()> interrupted = {};  // polled a few times a second
};

// Returns the exit status: 0, or kFailure with a logged reason; on failure OUTPUT is unchanged.
// Throws base::Error as perf::locate_perf() does.
[[nodiscard]] int weave_file(const WeaveFileOptions& options, base::Logger& logger,
                             RecordObserver& observer);

}  // namespace pyinject::record
