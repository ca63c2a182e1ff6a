// From the end of the recording on; and the ways out when it comes to none.
#include "base/format.hpp"
#include "record/verbs/function_recorder.hpp"

namespace pyinject::session {

using base::Deadline;

int FunctionRecorder::finish(EndOfRecording end) {
  observer_.stopped();
  if (end.end != End::kCommand) {
    workload_.terminate();
  }
  (void)perf_.disable(-1);
  (void)perf_.ask_to_stop(-1);
  // A signal meanwhile cuts the wait short: perf then completes its file at once.
  perf_.wait_for_file(Deadline::after(kPerfCompletes), signals_.fd(), [] { return true; });
  workload_.wait_or_kill();
  if (!perf_.completed()) {
    return perf_.report_failure();
  }
  perf_.repeat_messages(base::LogLevel::kDebug);
  files_ = perf_.paths();
  return workload_.status() != 0 ? workload_.status()
                                 : status_after(end, workload_.process(), pids_.size(), logger_);
}

// Nothing was recorded: perf ends, and its file goes.
int FunctionRecorder::give_up(int status) {
  (void)perf_.discard(signals_.fd());
  return status;
}

bool FunctionRecorder::remove_events() {
  const auto left = events_->remove();
  if (!left.empty()) {
    logger_.error(
        "{} and {} others are in use elsewhere and stay in tracefs: the next record "
        "--functions removes them",
        left.front(), left.size() - 1);
  }
  return left.empty();
}

}  // namespace pyinject::session
