// Finds guard processes for tests.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <optional>
#include <set>

namespace pyinject::test {

// A running guard and its pidfd, which is readable when the guard has ended.
struct RunningGuard {
  base::Pid pid;
  base::UniqueFd pidfd;
  [[nodiscard]] bool ended() const;
  [[nodiscard]] bool ends() const;  // false: not within kPatience
};

// The guard of the tool PARENT.
[[nodiscard]] std::optional<RunningGuard> guard_of(base::Pid parent);

class Guards {
 public:
  // From now on, guards whose tool is killed become children of this process.
  Guards();
  // Ends the processes they left, such as the command of a recording.
  ~Guards();
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  // Waits until no guard of a killed tool is left.
  void wait_for_guards() const;
  // Waits until this process has no child but KEEP, that is until no guard, perf or command of a
  // killed tool is left. A GoogleTest failure if one does not end.
  void wait_for_orphans(const std::set<base::Pid>& keep = {}) const;
};

}  // namespace pyinject::test
