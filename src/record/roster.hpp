// Who is recorded: the processes that the options choose, those that perf is told of, and who is
// born while perf starts.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/targets/scope.hpp"
#include "targets/target_watch.hpp"

#include <set>
#include <vector>

namespace pyinject::session {

class Roster {
 public:
  // OPTIONS has to outlive it.
  explicit Roster(const RecordOptions& options);

  // COMMAND, which is held back, is recorded. FAMILY: with all that it starts.
  void add_command(base::Pid command, bool family);
  // Chooses among the processes that are there now.
  void choose();
  [[nodiscard]] const std::vector<base::Pid>& chosen() const { return chosen_; }
  // The chosen ones that are none of ROOTS; then ROOTS are chosen, too.
  [[nodiscard]] std::vector<base::Pid> add_roots(const std::vector<base::Pid>& roots);
  // Of the chosen ones PIDS run no Python.
  void set_no_pythons(std::set<base::Pid> pids) { no_pythons_ = std::move(pids); }
  // The chosen ones that may be Pythons.
  [[nodiscard]] std::vector<base::Pid> possible_pythons() const;

  // perf is told of all that are chosen and still there.
  void tell_perf_of_chosen();
  // Those that perf is told of, as -p; not in use where it records the whole system.
  [[nodiscard]] const std::vector<base::Pid>& for_perf() const { return for_perf_; }
  // Members of the families that perf has not been told of are added. True: there is one.
  [[nodiscard]] bool add_newborn();
  // perf has ended without a word, as it does when a process that it was told of exits meanwhile.
  // True: those that have exited are left out, and others remain.
  [[nodiscard]] bool drop_exited(base::Logger& logger);
  // The threads that perf has opened its events for, or should have: of the targets and their
  // children, and with --children of all their descendants.
  [[nodiscard]] std::set<base::Tid> tasks();

  // Which of those that perf was told of still run.
  [[nodiscard]] TargetWatch& watch() { return watch_; }
  // All that ever belonged to the recording.
  [[nodiscard]] TargetSet& targets() { return targets_; }
  [[nodiscard]] const TargetSet& targets() const { return targets_; }

 private:
  void tell_perf_of(base::Pid pid);
  [[nodiscard]] std::vector<base::Pid> families();

  const RecordOptions& options_;
  TargetSet targets_;
  bool with_children_;  // perf records what targets start later
  TargetWatch watch_;
  std::vector<base::Pid> chosen_;
  std::set<base::Pid> no_pythons_;
  std::vector<base::Pid> for_perf_;
};

}  // namespace pyinject::session
