// Finds active children: a child that an active target forks is active, too.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <set>
#include <vector>

namespace pyinject::targets {

class ForkedChildren {
 public:
  // SESSION: the session that activates the targets.
  ForkedChildren(python::Detector& detector, base::Logger& logger, base::ProcessId session)
      : detector_{detector}, logger_{logger}, session_{session} {}

  // Children that TARGET has forked since its activation may be active.
  void watch(const Ancestor& target);
  [[nodiscard]] bool none() const { return ancestors_.empty(); }

  struct Found {
    std::vector<python::Target> active;
    bool complete = true;  // false: one could not be examined, which was logged
  };
  // Children that are on by this session and were not returned before. A fork copies the owner as
  // well; targets of other sessions or of `activate` do not count.
  [[nodiscard]] Found find();

  // Call it when the targets are off: lets MANAGER switch off the children that find() returns,
  // until there are no more. False: one may still be on; it was logged.
  bool switch_off(Manager& manager);

 private:
  python::Detector& detector_;
  base::Logger& logger_;
  base::ProcessId session_;
  std::vector<Ancestor> ancestors_;
  std::set<base::ProcessId> known_;
  std::set<base::Pid> reported_;  // could not be examined; {}: could not be listed
};

}  // namespace pyinject::targets
