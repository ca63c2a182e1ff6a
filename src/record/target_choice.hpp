// Chooses what a recording records: its first targets, and perf's options for them.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "record/engine.hpp"
#include "record/interruption.hpp"
#include "record/roster.hpp"
#include "record/workload.hpp"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::record {

// The arguments must outlive it.
class TargetChoice {
 public:
  TargetChoice(const RecordPlan& plan, Engine& engine, targets::Manager& manager, Roster& roster,
               Workload& workload, Interruption& interruption, base::Logger& logger)
      : plan_{plan},
        engine_{engine},
        manager_{manager},
        roster_{roster},
        workload_{workload},
        interruption_{interruption},
        logger_{logger} {}

  // Examines the processes that the plan names and fills the roster; holds the command if it is the
  // target. False: refused, which was logged, or interrupted.
  [[nodiscard]] bool choose();
  // Afterwards: what perf records of them.
  void choose_call_graph();

  // The options that this tool adds for perf.
  [[nodiscard]] const std::vector<std::string>& options() const { return options_; }
  [[nodiscard]] std::vector<python::Target> take_targets() { return std::move(targets_); }
  // Tells of processes that have started since; null: none of them matters.
  [[nodiscard]] std::unique_ptr<watch::ProcessWatch> take_watch() { return std::move(watch_); }

 private:
  void hold_command();
  [[nodiscard]] targets::Selection choose_families();
  void name_python_descendants(const std::set<base::Pid>& roots);
  void add_options();

  const RecordPlan& plan_;
  Engine& engine_;
  targets::Manager& manager_;
  Roster& roster_;
  Workload& workload_;
  Interruption& interruption_;
  base::Logger& logger_;
  std::unique_ptr<watch::ProcessWatch> watch_;
  std::vector<python::Target> targets_;
  std::vector<std::string> options_;
};

}  // namespace pyinject::record
