// The steps of one recording of calls; function_recording.hpp says what they promise together.
#pragma once

#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/output_file.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/perf/perf_process.hpp"
#include "pyinject/perf/uprobe_events.hpp"
#include "pyinject/python/function_probes.hpp"
#include "pyinject/session/function_recording.hpp"
#include "pyinject/session/stop_signals.hpp"
#include "session/target_watch.hpp"
#include "session/wait_for_end.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::session {

class FunctionRecorder {
 public:
  FunctionRecorder(const RecordOptions& options, base::Logger& logger, RecordObserver& observer);

  // As record_functions(). To be called once.
  [[nodiscard]] FunctionRecording run();

 private:
  int steps();
  bool choose_targets();
  void open_events();
  bool make_events();
  // "entry_0_2": by the names is told what is of one file (src/calls).
  void add_events(const python::FunctionProbes& target, std::size_t file);
  [[nodiscard]] std::vector<std::string> own_options() const;
  // Each: the status to end with, when it comes to nothing.
  std::optional<int> start_perf_for_all(const perf::Perf& perf);
  std::optional<int> start_perf(const perf::Perf& perf);
  std::optional<int> make_request(std::string_view word);
  [[nodiscard]] std::set<base::Tid> threads_of_targets() const;
  void start_command();
  void on_tick();
  int finish(EndOfRecording end);
  // A signal meanwhile cuts the wait short: perf then completes its file at once.
  void stop_perf(std::chrono::seconds patience);
  // Nothing was recorded: perf ends, and its file goes.
  int give_up(int status);
  bool remove_events();

  const RecordOptions& options_;
  base::Logger& logger_;
  RecordObserver& observer_;
  perf::Output output_;
  // Destroyed last to first: perf ends before its events are removed, signals come last.
  StopSignals signals_;
  std::vector<base::Pid> pids_;
  std::vector<python::FunctionProbes> targets_;
  TargetWatch watch_;
  std::unique_ptr<perf::UprobeEvents> events_;
  std::string no_events_;  // why there are none
  std::unique_ptr<perf::OutputRollback> rollback_;
  std::unique_ptr<perf::PerfProcess> perf_;
  std::unique_ptr<base::Child> command_;
  int command_problem_ = 0;  // 126, 127
  bool told_to_end_ = false;
  base::Deadline::Clock::time_point enabled_at_;
  std::vector<std::string> files_;
};

}  // namespace pyinject::session
