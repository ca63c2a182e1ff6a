// The steps of one recording; record_session.hpp says what they promise together.
#pragma once

#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/perf/perf_process.hpp"
#include "pyinject/session/call_graph.hpp"
#include "pyinject/session/guard.hpp"
#include "pyinject/session/manager.hpp"
#include "pyinject/session/options.hpp"
#include "pyinject/session/record_observer.hpp"
#include "pyinject/session/stop_signals.hpp"
#include "pyinject/weave/recorded_files.hpp"
#include "session/arrivals.hpp"
#include "session/command_interpreter.hpp"
#include "session/distant_maps.hpp"
#include "session/forked_children.hpp"
#include "session/frame_watch.hpp"
#include "session/launched_processes.hpp"
#include "session/post_processing.hpp"
#include "session/stack_sampler.hpp"
#include "session/target_watch.hpp"
#include "session/wait_for_end.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pyinject::session {

// What perf makes of its options, and of our standard output.
[[nodiscard]] perf::Output output_of(const RecordOptions& options);

class Recorder {
 public:
  // SAMPLER: the second engine, which is INJECTOR then; nullptr: the targets are activated.
  Recorder(const RecordOptions& options, python::Detector& detector, python::Injector& injector,
           StackSampler* sampler, base::Logger& logger, RecordObserver& observer);

  // As record(). To be called once.
  [[nodiscard]] int run();
  // That ended it, or came while it ended; 0: none.
  [[nodiscard]] int signal() const { return signal_; }

 private:
  int steps();
  bool switch_off();
  ManagerOptions manager_options();
  void happened(const Event& event);
  void tell_held();
  void tell_counts();
  // The steps; one that returns a status ends the session with it.
  std::optional<int> choose_targets();
  void hold_command();
  bool ask_for_trampolines(std::map<std::string, std::string>& environment);
  [[nodiscard]] Selection choose_families();
  void choose_call_graph();
  void choose_call_graph_of_launched(const CallGraphWishes& wishes);
  void choose_call_graph_of_sampled(const CallGraphWishes& wishes);
  void take(const CallGraphChoice& choice);
  std::optional<int> start_perf_for_all(const perf::Perf& perf);
  std::optional<int> start_perf(const perf::Perf& perf);
  std::optional<int> attach_sampler();
  void tell_attached();
  [[nodiscard]] bool may_record_all() const;
  [[nodiscard]] std::vector<base::Pid> families();
  [[nodiscard]] bool find_newborn();
  [[nodiscard]] std::set<base::Tid> tasks_of_targets();
  void record_also(base::Pid pid);
  void enable_side_events();
  std::optional<int> activate();
  std::optional<int> enable();
  int perf_ended_early();
  int ended_before_launch();
  void start_command();
  void on_tick();
  void follow_arrivals();
  void ended(base::Pid pid, std::optional<ActiveTarget> active);
  int finish(EndOfRecording end);
  void stop_perf();
  [[nodiscard]] int status_of(EndOfRecording end);
  int perf_failed();
  void save_unfinished();
  int give_up(int status);
  void discard();
  void collect_maps();
  void collect_map(int fd, base::Pid pid);
  std::optional<int> post_process();
  [[nodiscard]] std::function<bool(std::uint32_t)> wanted_samples() const;
  [[nodiscard]] weave::Knowledge knowledge();
  // UNFINISHED: perf has died.
  Processed post_process_file(const std::string& path, bool last, bool unfinished = false);
  [[nodiscard]] std::string lost_with_completion() const;
  [[nodiscard]] base::UniqueFd open_map(std::uint32_t pid) const;
  void summarize();
  [[nodiscard]] bool take_signal();
  [[nodiscard]] std::optional<std::uint64_t> output_bytes() const;

  const RecordOptions& options_;
  python::Detector& detector_;
  python::Injector& injector_;
  StackSampler* sampler_;
  bool sampler_attached_ = false;
  std::vector<Event> held_;
  base::Logger& logger_;
  RecordObserver& observer_;
  perf::Output output_;
  // Destroyed last to first: targets are switched off before perf is stopped, signals come last.
  StopSignals signals_;
  int signal_ = 0;           // the first that came
  bool completing_ = false;  // the events are enabled no more
  std::unique_ptr<Guard> guard_;
  std::vector<base::Pid> pids_;
  std::vector<std::string> own_options_;  // that perf gets from us
  std::string perf_path_;
  std::unique_ptr<perf::OutputRollback> rollback_;
  std::unique_ptr<perf::PerfProcess> perf_;
  std::unique_ptr<base::Child> command_;
  bool perf_told_to_end_ = false;
  int command_problem_ = 0;                      // 126, 127
  std::unique_ptr<LaunchedProcesses> launched_;  // of COMMAND, when it is the target
  std::optional<CommandInterpreter> interpreter_;
  TargetWatch watch_;
  Population population_;
  std::unique_ptr<watch::ProcessWatch> process_watch_;  // until ARRIVALS has it
  std::vector<base::Pid> chosen_;
  std::set<base::Pid> no_pythons_;  // of these
  bool record_all_ = false;         // perf does, and the sampler drops what is not wanted
  bool drops_others_ = false;       // the sampler does, for good: it is to be told of all targets
  DistantMaps distant_maps_;
  ForkedChildren children_;
  std::vector<python::Target> targets_;
  base::Deadline::Clock::time_point enabled_at_;
  std::chrono::nanoseconds elapsed_{};
  // By the recording's clock; 0: not known.
  std::uint64_t begun_at_ = 0;
  std::uint64_t ended_at_ = 0;
  std::vector<perf::CollectedMap> maps_;
  std::vector<WovenFile> woven_;
  weave::RecordedFiles files_;
  FrameWatch frames_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<Arrivals> arrivals_;  // null: who is there at the beginning is all
};

}  // namespace pyinject::session
