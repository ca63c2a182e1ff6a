// A process that switches the targets off if this tool is killed.
//
// For example:
//   targets::Guard guard{detector, injector, logger, {}};  // before the first thread
//   guard.watch(target);
//   (void)injector.activate(target, {.owner = targets::this_session()});
//   (void)injector.deactivate(target, {});
//   guard.dismiss();
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/session_names.hpp"

#include <optional>

namespace pyinject::targets {

struct GuardOptions {
  // The session that switched the targets on; {0, 0}: `activate`. Unset: switch off whatever is on
  // by us.
  std::optional<base::ProcessId> session = {};
  perf::MapCollectorOptions maps = {};
};

// One small process per session. It learns of a target before the target is touched, and waits
// until it is dismissed or its socket reports that this tool has exited. Then it switches off what
// is on, cancels pending requests, does the same for children that targets forked, copies the maps
// that perf would not find, reports on stderr, and exits. It runs in its own session (setsid), so
// the terminal's signals do not reach it, and it ignores the signals that ask a process to exit: it
// exits with the tool.
//
// It also kills this tool (SIGKILL) if a target stays stopped for more than 2 s, because the tool
// itself was stopped by SIGSTOP or a freezer: the kernel then lets the target run.
class Guard {
 public:
  // Forks. Throws base::SystemError on failure. Create it while this process has one thread, and
  // before perf or a command is started.
  Guard(python::Detector& detector, python::Injector& injector, base::Logger& logger,
        const GuardOptions& options);
  // If not dismissed, the guard process does its work now; the destructor waits up to 2 s for it.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Targets are about to be stopped for which watch() has not been called.
  void expect_stops();
  // Call it before touching TARGET.
  void watch(const python::Target& target);
  // FD: the map that TARGET writes. The guard duplicates the descriptor, so that it can copy the
  // map even if the target has exited by then.
  void keep_map(const python::Target& target, int fd);
  // TARGET has exited or exec'ed, and its map has been copied.
  void forget(const python::Target& target);
  // All targets are verified to be off or have provably exited: ends the guard process and waits
  // for its exit.
  void dismiss();

 private:
  [[nodiscard]] bool wait_for_its_end();
  void warn_once();

  base::Logger& logger_;
  bool of_activate_;
  base::Pid pid_;
  base::UniqueFd pidfd_;  // until the guard process is reaped
  base::UniqueFd socket_;
  bool warned_ = false;
  bool switches_off_ = false;  // it has targets to switch off, and is not dismissed
};

}  // namespace pyinject::targets
