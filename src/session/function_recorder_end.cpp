// From the end of the recording on; and the ways out when it comes to none.
#include "base/format.hpp"
#include "pyinject/perf/output_file.hpp"
#include "session/function_recorder.hpp"
#include "session/recording_end.hpp"

#include <csignal>
#include <utility>

namespace pyinject::session {

using base::Deadline;

int FunctionRecorder::finish(EndOfRecording end) {
  observer_.stopped();
  if (command_ && end.end != End::kCommand) {
    command_->send_signal(SIGTERM);
  }
  (void)disable_events(*perf_, -1, told_to_end_, logger_);
  stop_perf(kPerfCompletes);
  if (command_) {
    make_command_end(*command_, logger_);
  }
  if (!perf_completed(*perf_, told_to_end_)) {
    return report_perf_failure(*perf_, logger_);
  }
  repeat_perf(*perf_, base::LogLevel::kDebug, logger_);
  for (auto& file : perf::parse_written_files(perf_->stderr_text())) {
    files_.push_back(std::move(file.path));
  }
  if (files_.empty() && !output_.several) {
    files_.push_back(output_.path);
  }
  return command_problem_ != 0 ? command_problem_
                               : status_after(end, command_.get(), pids_.size(), logger_);
}

// A signal meanwhile cuts the wait short: perf then completes its file at once.
void FunctionRecorder::stop_perf(std::chrono::seconds patience) {
  if (!told_to_end_) {
    (void)perf_->request("stop", Deadline::after(kPerfAnswers));
  }
  if (!perf_->wait_for_file(Deadline::after(patience), signals_.fd())) {
    told_to_end_ = make_perf_end(*perf_, logger_);
  }
}

// Nothing was recorded: perf ends, and its file goes.
int FunctionRecorder::give_up(int status) {
  stop_perf(kPerfAnswers);
  repeat_perf(*perf_, base::LogLevel::kDebug, logger_);
  rollback_->undo();
  return status;
}

bool FunctionRecorder::remove_events() {
  const auto left = events_->remove();
  if (!left.empty()) {
    logger_.error(
        "{} and {} others are in use by somebody else and stay in tracefs: the next record "
        "--functions removes them",
        left.front(), left.size() - 1);
  }
  return left.empty();
}

}  // namespace pyinject::session
