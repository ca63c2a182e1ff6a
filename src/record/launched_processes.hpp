// The Pythons that a launched command becomes or starts.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/manager.hpp"
#include "record/extension_modules.hpp"

#include <map>
#include <set>
#include <utility>

#include <sys/types.h>

namespace pyinject::record {

class LaunchedProcesses {
 public:
  LaunchedProcesses(python::Detector& detector, base::Logger& logger, base::Pid command)
      : detector_{detector}, logger_{logger}, command_{command} {}

  // perf uses frame pointers: warn about an extension module without them.
  void follows_frame_pointers() { frame_pointers_ = true; }

  // The user knows that interpreters of this kind have no names; each kind is reported once.
  void mark_reported(python::Reason reason, const python::Version& version) {
    reported_.emplace(reason, version);
  }

  // Checks each descendant once per program that it execs: if its trampoline is on, there is
  // nothing to do; if it ignored its environment, MANAGER gets it as a late arrival; if it cannot
  // have a trampoline, it is reported with the reason.
  void look(targets::Manager& manager);

 private:
  using Program = std::pair<dev_t, ino_t>;

  // False: check it again later.
  bool look_at(base::Pid pid, targets::Manager& manager);

  python::Detector& detector_;
  base::Logger& logger_;
  base::Pid command_;
  bool frame_pointers_ = false;
  ExtensionModules extensions_;
  bool told_of_extension_ = false;
  std::set<std::pair<python::Reason, python::Version>> reported_;
  std::map<base::ProcessId, Program> known_;
};

}  // namespace pyinject::record
