// One `perf record`, from its start to its file. What each step says about a failure is logged
// here.
#pragma once

#include "perf/perf_process.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/output_file.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pyinject::session {

class PerfRun {
 public:
  PerfRun(perf::Output output, base::Logger& logger)
      : output_{std::move(output)}, logger_{logger} {}

  // Starts perf with its events disabled and waits until it is set up: kPerfSetsUp, or until
  // INTERRUPT (a descriptor) is readable. The output is named to it, and a file of an earlier
  // recording is remembered. Throws base::SystemError when perf cannot be started. Undone by
  // discard(). Can be called again after kEnded or discard().
  [[nodiscard]] perf::Answer start(perf::RecordCommand command, int interrupt);
  [[nodiscard]] bool started() const { return perf_ != nullptr; }
  // To be called while started() only.
  [[nodiscard]] perf::PerfProcess& process() const { return *perf_; }
  [[nodiscard]] const perf::Output& output() const { return output_; }

  // Memory that becomes executable from now on is known to perf. Its failure shows in enable().
  void enable_side_events(int interrupt);
  [[nodiscard]] perf::Answer enable(int interrupt);
  // perf reads commands only when its buffers are empty: one that is kept too busy for that is told
  // to end by SIGTERM, which disables its events at once; so is one whose answer INTERRUPT (or -1)
  // comes before.
  perf::Answer disable(int interrupt);
  [[nodiscard]] perf::Answer ask_to_stop(int interrupt);
  // Waits for perf's end; what INTERRUPT becomes readable for is asked of GIVE_UP: true: not to
  // wait any longer. A perf that has not ended by DEADLINE is ended by SIGTERM, on which it
  // completes its file, then by SIGKILL; at once where it is stuck.
  void wait_for_file(base::Deadline deadline, int interrupt, const std::function<bool()>& give_up);

  // Has it ended, and completed its file?
  [[nodiscard]] bool completed();
  // Says why it did not. What the tool ends with: 0 where it ended well before it recorded
  // anything.
  [[nodiscard]] int report_failure();
  // What perf has written to stderr so far, line by line. WITHOUT_USAGE: not the list of its
  // options that it adds where it does not know one.
  void repeat_messages(base::LogLevel level, bool without_usage = false) const;
  // The files that it says it has written; else the one that it was to write, unless it writes
  // several.
  [[nodiscard]] std::vector<std::string> paths() const;
  // Nothing was recorded: perf ends, if it was started, and its file goes. False: INTERRUPT became
  // readable meanwhile.
  bool discard(int interrupt);
  // The same of a perf that has ended by itself.
  void undo_output() const { rollback_->undo(); }

 private:
  void end_perf();

  perf::Output output_;
  base::Logger& logger_;
  std::unique_ptr<perf::OutputRollback> rollback_;
  std::unique_ptr<perf::PerfProcess> perf_;
  bool told_to_end_ = false;  // by SIGTERM
};

}  // namespace pyinject::session
