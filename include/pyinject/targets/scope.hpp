// Selects the processes of a recording.
//
// For example:
//   const targets::Scope scope{.user = targets::user_by_name("www-data"), .command = "gunicorn*"};
//   auto set = targets::TargetSet::of_scope(scope);
//   const auto pids = set.choose(targets::visible_processes());
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/session_names.hpp"
#include "pyinject/watch/process_watch.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <sys/types.h>

namespace pyinject::targets {

// The processes that meet every condition; without a condition, all processes.
struct Scope {
  std::optional<uid_t> user = {};  // effective user
  std::string command = {};        // glob(7) for the name of the first thread, proc_pid_comm(5)
  std::string name = {};           // glob(7) for the same or for a word of its command line
  // Path below the root of cgroup2, without leading or trailing slash: this cgroup and those below
  // it.
  std::optional<std::string> cgroup = {};

  [[nodiscard]] bool narrow() const { return chosen_from_file() || cgroup; }
  // perf cannot select these processes: it records all, and post-processing drops the others.
  [[nodiscard]] bool chosen_from_file() const { return user || !command.empty() || !name.empty(); }
};

// Whether PID is in SCOPE now; false if it has exited.
[[nodiscard]] bool is_in(const Scope& scope, base::Pid pid);

// Whether NAME, glob(7), is a word of ARGUMENTS, a command line: of "python3 -m uvicorn
// /srv/shop.py:app", also "uvicorn", "shop.py", "shop" and "app".
[[nodiscard]] bool has_word(const std::vector<std::string>& arguments, const std::string& name);

// "1000" or "www-data"; nullopt: no such user.
[[nodiscard]] std::optional<uid_t> user_by_name(const std::string& text);

// The set of processes that belong to a recording, updated as processes come and go.
class TargetSet {
 public:
  // All processes in SCOPE.
  static TargetSet of_scope(Scope scope);
  // ROOTS and all their descendants, including those that have lost their parents.
  static TargetSet of_families(const std::vector<base::Pid>& roots);

  // Selects the current members from ALL; looks up their parents.
  [[nodiscard]] std::vector<base::Pid> choose(const std::vector<base::Pid>& all);

  // True: the process of EVENT has become a member.
  bool note(const watch::ProcessEvent& event);

  [[nodiscard]] bool contains(base::Pid pid) const {
    return everybody() || members_.contains(pid.value());
  }
  // Whether PID has ever been a member. For recorded samples.
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

}  // namespace pyinject::targets
