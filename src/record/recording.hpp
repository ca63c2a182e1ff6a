// The steps of one recording with one engine; record_session.hpp has the contract. recording.cpp
// has the order of the steps, recording_targets.cpp selects the targets, recording_perf.cpp starts
// perf, recording_completion.cpp does the work after the end.
#pragma once

#include "perfdata/target_gaps.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "record/completion.hpp"
#include "record/engine.hpp"
#include "record/perf_run.hpp"
#include "record/roster.hpp"
#include "record/thread_name_watch.hpp"
#include "record/wait_for_end.hpp"
#include "record/waiting_threads.hpp"
#include "record/workload.hpp"
#include "targets/container_maps.hpp"
#include "targets/late_arrivals.hpp"
#include "targets/map_copies.hpp"
#include "weave/recorded_files.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pyinject::record {

class Recording {
 public:
  Recording(const RecordPlan& plan, std::unique_ptr<Engine> engine, base::Logger& logger);

  // As record(). Call it once.
  [[nodiscard]] int run();
  // The signal that ended the recording; 0: none.
  [[nodiscard]] int signal() const { return signal_; }

 private:
  int steps();
  bool leave();
  bool switch_off();
  targets::ManagerOptions manager_options();
  // The steps. If a step returns a status, the session ends with it.
  std::optional<int> choose_targets();
  void hold_command();
  [[nodiscard]] targets::Selection choose_families();
  void name_python_descendants(const std::set<base::Pid>& no_pythons);
  void choose_call_graph();
  std::optional<int> start_perf_for_all(const perf::Perf& perf);
  std::optional<int> start_perf(const perf::Perf& perf);
  std::optional<int> attach_engine();
  [[nodiscard]] bool may_record_all() const;
  [[nodiscard]] std::set<base::Tid> tasks_of_targets();
  void enable_side_events();
  std::optional<int> activate();
  std::optional<int> enable();
  int perf_ended_early();
  int ended_before_launch();
  void look_at_waits();
  EndOfRecording wait();
  void on_tick();
  void follow_arrivals();
  void ended(base::Pid pid, const std::shared_ptr<const targets::ActiveTarget>& active);
  int finish(EndOfRecording end);
  void stop_perf();
  [[nodiscard]] int status_of(EndOfRecording end);
  int perf_failed();
  void save_unfinished();
  int give_up(int status);
  void discard();
  void collect_maps();
  std::optional<int> post_process();
  [[nodiscard]] std::function<bool(std::uint32_t)> wanted_samples() const;
  [[nodiscard]] weave::RecordingContext recording_context();
  [[nodiscard]] perfdata::TargetGaps gaps_before_end() const;
  // UNFINISHED: perf died.
  Processed post_process_file(const std::string& path, bool last, bool unfinished = false);
  [[nodiscard]] std::string lost_with_completion() const;
  void summarize();
  [[nodiscard]] bool take_signal();
  [[nodiscard]] std::optional<std::uint64_t> output_bytes() const;

  const RecordPlan& plan_;
  base::Logger& logger_;
  // Destroyed last to first: targets are switched off before perf is stopped; signals are restored
  // last.
  base::Cancellation interrupted_;  // by the first signal; for work done before recording starts
  targets::StopSignals signals_;
  int signal_ = 0;           // the first one received
  bool completing_ = false;  // the events are disabled again
  std::unique_ptr<Engine> engine_;
  RecordObserver& observer_;
  std::vector<std::string> own_options_;  // options that this tool adds for perf
  perf::Perf located_;
  PerfRun perf_;
  Workload workload_;
  Roster roster_;
  std::unique_ptr<watch::ProcessWatch> process_watch_;  // until ARRIVALS owns it
  bool record_all_ = false;    // perf does, and the engine drops unwanted samples
  bool drops_others_ = false;  // the engine does, permanently: it must learn of all targets
  targets::ContainerMaps container_maps_;
  std::vector<python::Target> targets_;
  base::Deadline::Clock::time_point enabled_at_;
  std::chrono::nanoseconds elapsed_{};
  // By the recording's clock; 0: unknown.
  std::uint64_t begun_at_ = 0;
  std::uint64_t ended_at_ = 0;
  perfdata::TargetGaps gaps_;
  targets::MapCopies maps_;
  std::vector<WovenFile> woven_;
  weave::RecordedFiles files_;
  std::optional<WaitingThreads> waits_;
  ThreadNameWatch thread_names_;
  std::unique_ptr<targets::Manager> manager_;
  // Null: no late arrivals, only the initial processes.
  std::unique_ptr<targets::LateArrivals> arrivals_;
};

}  // namespace pyinject::record
