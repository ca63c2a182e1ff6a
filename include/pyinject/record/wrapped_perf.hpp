// Other perf commands that observe running processes and print or write stacks: trace, top, sched
// record, kmem record.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/record_observer.hpp"

#include <string>
#include <vector>

namespace pyinject::session {

struct WrapOptions {
  std::vector<base::Pid> pids;
  bool strict = true;
  perf::PerfSearch perf;
  std::vector<std::string> verb;       // {"trace"}, {"sched", "record"}
  std::vector<std::string> arguments;  // arguments of VERB, including -p: unchanged and in order
  perf::MapCollectorOptions maps;

  // VERB writes a file and takes the options of `perf record`.
  [[nodiscard]] bool records() const { return verb.back() == "record"; }
};

// Activates the targets, runs perf in the foreground with the terminal, and switches the targets
// off after perf exits. Post-processes a file that perf has written, if it has stacks. Returns
// perf's exit status, or kFailure with a logged reason. Throws base::Error if this tool fails.
// However it ends, no target stays active that was not active before.
[[nodiscard]] int wrap_perf(const WrapOptions& options, python::Detector& detector,
                            python::Injector& injector, base::Logger& logger,
                            RecordObserver& observer);

}  // namespace pyinject::session
