// One `perf record`, from its start to its output file. Logs the failure of each step.
#pragma once

#include "perf/perf_process.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/output_file.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pyinject::record {

class PerfRun {
 public:
  PerfRun(perf::Output output, base::Logger& logger)
      : output_{std::move(output)}, logger_{logger} {}

  // Starts perf with its events disabled, tells it the output path, and waits until it is set up:
  // for kPerfSetsUp, or until INTERRUPT (a descriptor) is readable. Remembers a file of an earlier
  // recording. Throws base::SystemError if perf cannot be started. Undone by discard(). May be
  // called again after kEnded or discard().
  [[nodiscard]] perf::Answer start(perf::RecordCommand command, int interrupt);
  [[nodiscard]] bool started() const { return perf_ != nullptr; }
  // Only while started().
  [[nodiscard]] perf::PerfProcess& process() const { return *perf_; }
  [[nodiscard]] const perf::Output& output() const { return output_; }
  // One of the processes that the latest perf was told to record; 0: the whole system.
  [[nodiscard]] base::Pid recorded() const { return recorded_; }

  // From now on perf records memory that becomes executable. A failure shows in enable().
  void enable_side_events(int interrupt);
  [[nodiscard]] perf::Answer enable(int interrupt);
  // perf reads commands only while its buffers are empty. If it is too busy for that, or if
  // INTERRUPT (-1: none) becomes readable before its answer, it gets SIGTERM, which disables its
  // events immediately.
  perf::Answer disable(int interrupt);
  [[nodiscard]] perf::Answer ask_to_stop(int interrupt);
  // Waits for perf to exit; whenever INTERRUPT becomes readable, calls GIVE_UP (true: stop
  // waiting). A perf still running at DEADLINE gets SIGTERM, on which it completes its file, then
  // SIGKILL; a perf that is stuck gets SIGKILL immediately.
  void wait_for_file(base::Deadline deadline, int interrupt, const std::function<bool()>& give_up);

  // Whether perf has exited and completed its file.
  [[nodiscard]] bool completed();
  // Logs why not. Returns the exit status of the tool: 0 if perf exited successfully before it
  // recorded anything.
  [[nodiscard]] int report_failure();
  // Logs perf's stderr so far, line by line. WITHOUT_USAGE: without the list of options that perf
  // adds after an unknown option.
  void repeat_messages(base::LogLevel level, bool without_usage = false) const;
  // The files that perf reports as written; else the one it was to write, unless it writes several.
  [[nodiscard]] std::vector<std::string> paths() const;
  // Nothing was recorded: ends perf if it was started, and removes its file. False: INTERRUPT
  // became readable in the meantime.
  bool discard(int interrupt);
  // The same for a perf that has exited by itself.
  void undo_output() const { rollback_->undo(); }

 private:
  void end_perf();

  perf::Output output_;
  base::Pid recorded_{0};
  base::Logger& logger_;
  std::unique_ptr<perf::OutputRollback> rollback_;
  std::unique_ptr<perf::PerfProcess> perf_;
  bool told_to_end_ = false;  // by SIGTERM
};

}  // namespace pyinject::record
