// The recording from its end on, and the exits when it fails.
#include "base/format.hpp"
#include "base/text.hpp"
#include "record/verbs/function_recorder.hpp"

namespace pyinject::record {

using base::Deadline;

int FunctionRecorder::finish(EndOfRecording end) {
  observer_.stopped();
  if (end.end != End::kCommand) {
    workload_.terminate();
  }
  (void)perf_.disable(-1);
  (void)perf_.ask_to_stop(-1);
  // A signal cuts the wait short: perf then completes its file immediately.
  perf_.wait_for_file(Deadline::after(kPerfCompletes), stop_.fd(), [] { return true; });
  workload_.wait_until_ended(stop_.fd(), [this] { return stop_.next().has_value(); });
  if (!perf_.completed()) {
    return perf_.report_failure();
  }
  perf_.repeat_messages(base::LogLevel::kDebug);
  files_ = perf_.paths();
  return workload_.status() != 0 ? workload_.status()
                                 : status_after(end, workload_.process(), pids_.size(), logger_);
}

// Nothing was recorded: ends perf and removes its file.
int FunctionRecorder::give_up(int status) {
  (void)perf_.discard(stop_.fd());
  return status;
}

bool FunctionRecorder::remove_events() {
  const auto left = events_->remove();
  if (!left.empty()) {
    logger_.error(
        "events in tracefs are in use elsewhere: {}{}; the guard removes them once no perf uses "
        "them, within a minute",
        left.front(), left.size() == 1 ? "" : fmt::format(" and {} more", left.size() - 1));
  }
  return left.empty();
}

}  // namespace pyinject::record
