// From the end of the recording on; and the ways out when it comes to none.
#include "base/format.hpp"
#include "pyinject/base/text.hpp"
#include "session/function_recorder.hpp"

#include <csignal>
#include <utility>

namespace pyinject::session {

using base::Deadline;

int FunctionRecorder::finish(EndOfRecording end) {
  observer_.stopped();
  if (command_ && end.end != End::kCommand) {
    command_->send_signal(SIGTERM);
  }
  (void)perf_->request("disable", Deadline::after(kPerfAnswers));
  stop_perf(kPerfCompletes);
  if (command_ && !command_->wait(Deadline::after(kCommandEnds))) {
    logger_.warning("the command (pid {}) does not end after SIGTERM: it is killed",
                    command_->pid().value());
    command_->send_signal(SIGKILL);
    (void)command_->wait(Deadline::after(kCommandEnds));
  }
  const auto perf_status = perf_->try_wait();
  const bool as_told = told_to_end_ && perf_status && perf_status->shell_status() == 128 + SIGTERM;
  if (!perf_status || (!perf_status->success() && !as_told)) {
    return perf_failed();
  }
  for (auto& file : perf::parse_written_files(perf_->stderr_text())) {
    files_.push_back(std::move(file.path));
  }
  if (files_.empty() && !output_.several) {
    files_.push_back(output_.path);
  }
  return status_of(end);
}

int FunctionRecorder::status_of(EndOfRecording end) {
  if (command_problem_ != 0) {
    return command_problem_;
  }
  switch (end.end) {
    case End::kCommand:
      return command_->try_wait().value_or(base::ExitStatus{false, kFailure}).shell_status();
    case End::kSignal:
      return 128 + end.signal;
    case End::kTargets:
      logger_.warning("{} exited before the recording was to end",
                      pids_.size() == 1 ? "the target" : "all targets");
      return 0;
    case End::kPerf:
      logger_.warning("perf record ended by itself before the recording was to end");
      return 0;
    case End::kTime:
      return 0;
  }
  return kFailure;
}

// A signal meanwhile cuts the wait short: perf then completes its file at once.
void FunctionRecorder::stop_perf(std::chrono::seconds patience) {
  (void)perf_->request("stop", Deadline::after(kPerfAnswers));
  if (perf_->wait_for_file(Deadline::after(patience), signals_.fd())) {
    return;
  }
  logger_.warning("perf record has not completed its file: it is told to end");
  told_to_end_ = true;
  perf_->send_signal(SIGTERM);
  if (!perf_->wait(Deadline::after(kPerfAnswers))) {
    logger_.error("perf record does not end: it is killed, its file may be unusable");
    perf_->send_signal(SIGKILL);
    (void)perf_->wait(Deadline::after(kPerfAnswers));
  }
}

int FunctionRecorder::perf_failed() {
  const auto status = perf_->wait(Deadline::after(kPerfAnswers));
  if (status && status->success()) {
    logger_.warning("perf record ended at once and recorded nothing");
    return 0;
  }
  const std::string text{base::trim(perf_->stderr_text())};
  for (const auto line : base::split(text, '\n')) {
    logger_.info("perf: {}", base::printable(line));
  }
  logger_.error(
      "{}", perf::explain_record_failure(status.value_or(base::ExitStatus{true, SIGKILL}), text));
  return status == base::ExitStatus{false, kUsage} ? kUsage : kFailure;
}

// Nothing was recorded: perf ends, and its file goes.
int FunctionRecorder::give_up(int status) {
  stop_perf(kPerfAnswers);
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
