// Children that targets fork while they are active are active as well.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/target_selection.hpp"

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

  struct Found {
    std::vector<python::Target> active;
    bool complete = true;  // false: one could not be examined, which was logged
  };
  // Children that are on by this session and that no earlier call has found. A fork copies that as
  // well; what other sessions or `activate` have switched on does not count.
  [[nodiscard]] Found find();

  // Once the targets are off: has MANAGER switch off what find() finds, until there are no more.
  // False: one may still be on, which was logged.
  bool switch_off(Manager& manager);

 private:
  python::Detector& detector_;
  base::Logger& logger_;
  base::ProcessId session_;
  std::vector<Ancestor> ancestors_;
  std::set<base::ProcessId> known_;
  std::set<base::Pid> reported_;  // could not be examined; {}: could not even be listed
};

}  // namespace pyinject::session
