// Children that targets fork while they are active are active as well.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/session/manager.hpp"
#include "pyinject/session/target_selection.hpp"

#include <set>
#include <vector>

namespace pyinject::session {

class ForkedChildren {
 public:
  ForkedChildren(python::Detector& detector, base::Logger& logger)
      : detector_{detector}, logger_{logger} {}

  // From now on children of ID may be active.
  void watch(base::ProcessId id) { ancestors_.push_back(ancestor_now(id)); }

  // Once the targets are off: finds their children that are on by us and has MANAGER switch them
  // off, until there are no more. False: one is still on.
  bool switch_off(Manager& manager);

 private:
  python::Detector& detector_;
  base::Logger& logger_;
  std::vector<Ancestor> ancestors_;
  std::set<base::ProcessId> known_;
};

}  // namespace pyinject::session
