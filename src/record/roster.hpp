// The processes of a recording: those that the plan selects, those passed to perf, and those that
// start while perf starts.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/scope.hpp"
#include "targets/target_watch.hpp"

#include <set>
#include <vector>

namespace pyinject::record {

class Roster {
 public:
  // PLAN must outlive this object.
  explicit Roster(const RecordPlan& plan);

  // Records COMMAND, which is held. FAMILY: with all its descendants.
  void add_command(base::Pid command, bool family);
  // Selects from the processes that exist now.
  void choose();
  [[nodiscard]] const std::vector<base::Pid>& chosen() const { return chosen_; }
  // Selected processes that are not in ROOTS; afterwards ROOTS are selected, too.
  [[nodiscard]] std::vector<base::Pid> add_roots(const std::vector<base::Pid>& roots);
  // PIDS, which are selected, run no Python.
  void set_no_pythons(std::set<base::Pid> pids) { no_pythons_ = std::move(pids); }
  // The selected processes that may be Pythons.
  [[nodiscard]] std::vector<base::Pid> possible_pythons() const;

  // Passes to perf all selected processes that still exist.
  void tell_perf_of_chosen();
  // The processes passed to perf, as with -p; unused if perf records the whole system.
  [[nodiscard]] const std::vector<base::Pid>& for_perf() const { return for_perf_; }
  // Adds members of the families that perf does not know yet. True: there was one.
  [[nodiscard]] bool add_newborn();
  // Whether there are such processes.
  [[nodiscard]] bool has_newborn() { return !newborn().empty(); }
  // perf exited without a message, as it does if a process passed to it exits during its setup.
  // Drops processes that have exited; true: there were some, and others remain.
  [[nodiscard]] bool drop_exited(base::Logger& logger);
  // The threads that perf has opened its events for, or should have: those of the targets and their
  // children, and with --children of all their descendants.
  [[nodiscard]] std::set<base::Tid> tasks();

  // Tracks which processes passed to perf still run.
  [[nodiscard]] targets::TargetWatch& watch() { return watch_; }
  // Every process that ever belonged to the recording.
  [[nodiscard]] targets::TargetSet& targets() { return targets_; }
  [[nodiscard]] const targets::TargetSet& targets() const { return targets_; }

 private:
  [[nodiscard]] std::vector<base::Pid> newborn();
  void tell_perf_of(base::Pid pid);
  [[nodiscard]] std::vector<base::Pid> families();

  const RecordPlan& plan_;
  targets::TargetSet targets_;
  bool with_children_;  // perf records what targets start later
  targets::TargetWatch watch_;
  std::vector<base::Pid> chosen_;
  std::set<base::Pid> no_pythons_;
  std::vector<base::Pid> for_perf_;
};

}  // namespace pyinject::record
