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
  // SESSION: in whose name the targets are activated.
  ForkedChildren(python::Detector& detector, base::Logger& logger, base::ProcessId session)
      : detector_{detector}, logger_{logger}, session_{session} {}

  // Children that TARGET has forked since then may be active.
  void watch(const Ancestor& target);
  [[nodiscard]] bool none() const { return ancestors_.empty(); }

  // Once the targets are off: finds their children that are on by this session (a fork copies that,
  // too; what other sessions or `activate` have switched on is none of ours) and has MANAGER switch
  // them off, until there are no more. False: one is still on.
  bool switch_off(Manager& manager);

 private:
  python::Detector& detector_;
  base::Logger& logger_;
  base::ProcessId session_;
  std::vector<Ancestor> ancestors_;
  std::set<base::ProcessId> known_;
};

}  // namespace pyinject::session
