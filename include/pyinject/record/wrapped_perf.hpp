// Other verbs of perf that look at running processes and print or write stacks: trace, top, sched
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
  std::vector<std::string> arguments;  // what follows it: unchanged and in order, -p among them
  perf::MapCollectorOptions maps;

  // It writes a file, with the options of `perf record`.
  [[nodiscard]] bool records() const { return verb.back() == "record"; }
};

// The targets are activated, perf runs in the foreground with the terminal its own, and when it has
// ended the targets are switched off. A file that it has written gets whole stacks, if it has any.
// Returns perf's exit status, or kFailure with a logged reason. Throws base::Error when this tool
// fails. However it ends, no target is left active that was not before.
[[nodiscard]] int wrap_perf(const WrapOptions& options, python::Detector& detector,
                            python::Injector& injector, base::Logger& logger,
                            RecordObserver& observer);

}  // namespace pyinject::session
