// The process that switches targets off when this tool is killed.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"

#include <optional>

namespace pyinject::session {

struct GuardOptions {
  // In whose name targets are switched on; {0, 0}: `activate`. Unset: whatever is on by us goes
  // off.
  std::optional<base::ProcessId> session = {};
  perf::MapCollectorOptions maps = {};
};

// One small process for each session. It is told of a target before that is touched, and does
// nothing until it is dismissed, or its end of the socket says that this tool is no more. Then it
// switches off what is on, takes back what was asked for, does the same for children that targets
// forked, copies the maps that perf would not find, says so on stderr, and goes. It has a session
// of its own (setsid), so the terminal's signals do not reach it; those that ask a process to end
// it ignores: it ends with the tool.
//
// It also kills this tool (SIGKILL) when a stop of a target lasts longer than 2 s, since the tool
// has been stopped itself by SIGSTOP or a freezer: the kernel then lets the target go.
class Guard {
 public:
  // Forks. Throws base::SystemError when it cannot. To be made while this process has one thread
  // and before perf or a command is started.
  Guard(python::Detector& detector, python::Injector& injector, base::Logger& logger,
        const GuardOptions& options);
  // One that was not dismissed does its work now; it is waited for up to 2 s and then left to it.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Targets are about to be stopped that watch() has not been called for.
  void expect_stops();
  // TARGET is about to be touched.
  void watch(const python::Target& target);
  // FD: the map that TARGET writes. The guard gets a descriptor of its own, so that the map can be
  // copied even if the target has ended by then.
  void keep_map(const python::Target& target, int fd);
  // TARGET has ended, or runs another program, and its map has been copied.
  void forget(const python::Target& target);
  // Everything was read back as off or is proved to have ended: the guard ends, and has ended when
  // this returns.
  void dismiss();

 private:
  [[nodiscard]] bool wait_for_its_end();
  void warn_once();

  base::Logger& logger_;
  base::Pid pid_;
  base::UniqueFd pidfd_;  // until it was reaped
  base::UniqueFd socket_;
  bool warned_ = false;
};

}  // namespace pyinject::session
