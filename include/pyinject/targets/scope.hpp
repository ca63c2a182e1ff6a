// Which processes a recording is about.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/watch/process_watch.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <sys/types.h>

namespace pyinject::session {

// Of all processes those that meet every condition; none: all.
struct Scope {
  std::optional<uid_t> user = {};  // effective user
  std::string command = {};        // glob(7) for the name of the first thread, proc_pid_comm(5)
  // Path beneath the root of cgroup2, without a slash at its ends: it and those below it.
  std::optional<std::string> cgroup = {};

  [[nodiscard]] bool narrow() const { return chosen_from_file() || cgroup; }
  // perf cannot record these alone: it records all, and the rest is left out afterwards.
  [[nodiscard]] bool chosen_from_file() const { return user || !command.empty(); }
};

// Whether PID is in SCOPE now; false when it has gone.
[[nodiscard]] bool is_in(const Scope& scope, base::Pid pid);

// "1000" or "www-data"; nullopt: there is no such user.
[[nodiscard]] std::optional<uid_t> user_by_name(const std::string& text);

// All that ever belonged to a recording, kept right as processes come and go.
class TargetSet {
 public:
  // Of all processes those in SCOPE.
  static TargetSet of_scope(Scope scope);
  // ROOTS and all their descendants, also those that have lost their parents.
  static TargetSet of_families(const std::vector<base::Pid>& roots);

  // Those that are there now: of ALL, whose parents are looked up.
  [[nodiscard]] std::vector<base::Pid> choose(const std::vector<base::Pid>& all);

  // True: its process belongs to it, and did not before.
  bool note(const watch::ProcessEvent& event);

  [[nodiscard]] bool contains(base::Pid pid) const {
    return everybody() || members_.contains(pid.value());
  }
  // Was PID ever one of them? To be asked of recorded samples.
  [[nodiscard]] bool ever_contained(std::uint32_t pid) const {
    return everybody() || ever_.contains(static_cast<pid_t>(pid));
  }
  [[nodiscard]] bool everybody() const { return !families_ && !scope_.narrow(); }

 private:
  TargetSet() = default;
  bool set(base::Pid pid, bool member);
  [[nodiscard]] bool descends(base::Pid pid) const;

  Scope scope_;
  bool families_ = false;
  std::unordered_set<pid_t> members_;
  std::unordered_set<pid_t> ever_;
};

}  // namespace pyinject::session
