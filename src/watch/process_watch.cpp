#include "pyinject/watch/process_watch.hpp"

#include "base/format.hpp"

namespace pyinject::watch {

std::unique_ptr<ProcessWatch> watch_processes(base::Logger& logger) {
  std::string why;
  auto watch = watch_by_perf_events(why);
  if (watch) {
    logger.debug("processes are watched by {}", watch->name());
    return watch;
  }
  watch = watch_by_procfs();
  logger.debug("processes are watched by {}, not by perf events: {}", watch->name(), why);
  return watch;
}

}  // namespace pyinject::watch
