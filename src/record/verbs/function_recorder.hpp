// The steps of one recording of calls; function_recording.hpp has the contract.
#pragma once

#include "perf/uprobe_events.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/targets/stop_requests.hpp"
#include "python/examine/function_probes.hpp"
#include "record/perf_run.hpp"
#include "record/verbs/function_recording.hpp"
#include "record/wait_for_end.hpp"
#include "record/workload.hpp"
#include "targets/target_watch.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pyinject::record {

class FunctionRecorder {
 public:
  FunctionRecorder(const RecordPlan& plan, base::Logger& logger, RecordObserver& observer,
                   targets::StopRequests& stop);

  // As record_functions(). Call it once.
  [[nodiscard]] FunctionRecording run();

 private:
  int steps();
  bool choose_targets();
  void open_events();
  bool make_events();
  // Names are like "entry_0_2": they tell the events of one file apart (src/calls).
  void add_events(const python::FunctionProbes& target, std::size_t file);
  [[nodiscard]] std::vector<std::string> own_options() const;
  // Each returns the exit status if the recording fails.
  std::optional<int> start_perf_for_all(const perf::Perf& perf);
  std::optional<int> start_perf(const perf::Perf& perf);
  std::optional<int> judge(perf::Answer answer);
  [[nodiscard]] std::set<base::Tid> threads_of_targets() const;
  void on_tick();
  int finish(EndOfRecording end);
  // Nothing was recorded: ends perf and removes its file.
  int give_up(int status);
  bool remove_events();

  const RecordPlan& plan_;
  base::Logger& logger_;
  RecordObserver& observer_;
  targets::StopRequests& stop_;
  // Destroyed last to first: perf exits before its events are removed.
  std::vector<base::Pid> pids_;
  std::vector<python::FunctionProbes> targets_;
  targets::TargetWatch watch_;
  std::unique_ptr<perf::UprobeEvents> events_;
  std::string no_events_;  // why there are none
  PerfRun perf_;
  Workload workload_;
  base::Deadline::Clock::time_point enabled_at_;
  std::vector<std::string> files_;
};

}  // namespace pyinject::record
