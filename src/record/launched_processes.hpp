// The Pythons that a launched command has become or started.
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

namespace pyinject::session {

class LaunchedProcesses {
 public:
  LaunchedProcesses(python::Detector& detector, base::Logger& logger, base::Pid command)
      : detector_{detector}, logger_{logger}, command_{command} {}

  // perf does, so that an extension module without them is worth a word.
  void follows_frame_pointers() { frame_pointers_ = true; }

  // The user knows that interpreters of this kind have no names; each is said once.
  void mark_reported(python::Reason reason, const python::Version& version) {
    reported_.emplace(reason, version);
  }

  // Looks at each descendant once for each program that it executes: one whose trampoline is on is
  // as it should be; one that has ignored its environment is handed to MANAGER as one that came
  // late; one that cannot have a trampoline is named, with the reason.
  void look(Manager& manager);

 private:
  using Program = std::pair<dev_t, ino_t>;

  // False: to be looked at again.
  bool look_at(base::Pid pid, Manager& manager);

  python::Detector& detector_;
  base::Logger& logger_;
  base::Pid command_;
  bool frame_pointers_ = false;
  ExtensionModules extensions_;
  bool told_of_extension_ = false;
  std::set<std::pair<python::Reason, python::Version>> reported_;
  std::map<base::ProcessId, Program> known_;
};

}  // namespace pyinject::session
