// Guard processes, as tests find them.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <optional>
#include <set>

namespace pyinject::test {

// A running guard, by a descriptor that is readable when it has ended.
struct RunningGuard {
  base::Pid pid;
  base::UniqueFd pidfd;
  [[nodiscard]] bool ended() const;
  [[nodiscard]] bool ends() const;  // false: not within kPatience
};

class Guards {
 public:
  // From now on guards whose tool is killed become children of this process.
  Guards();
  // Ends what is left of them, such as a recording's command.
  ~Guards();
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  // The one of the tool PARENT.
  [[nodiscard]] std::optional<RunningGuard> of(base::Pid parent) const;
  // Until there is none whose tool was killed.
  void wait_for_guards() const;
  // Until nothing is left of tools that were killed, guard, perf or command: until this process has
  // no child but KEEP. A GoogleTest failure when one does not end.
  void wait_for_orphans(const std::set<base::Pid>& keep = {}) const;
};

}  // namespace pyinject::test
