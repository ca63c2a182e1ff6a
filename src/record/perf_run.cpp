#include "record/perf_run.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "pyinject/record/plan.hpp"

#include <csignal>
#include <utility>

namespace pyinject::record {

using base::Deadline;

perf::Answer PerfRun::start(perf::RecordCommand command, int interrupt) {
  rollback_ = std::make_unique<perf::OutputRollback>(output_);
  told_to_end_ = false;
  if (!output_.pipe) {
    // Without -o, perf would write to a standard output that is a pipe, as in `2>&1 | tee log`.
    command.own.insert(command.own.begin(), {"-o", output_.path});
  }
  recorded_ = command.pids.empty() ? base::Pid{0} : command.pids.front();
  perf_ = std::make_unique<perf::PerfProcess>(std::move(command));
  const auto answer = perf_->request("ping", Deadline::after(kPerfSetsUp), interrupt);
  if (answer == perf::Answer::kDeadline) {
    logger_.error("perf record was not ready within {} s: -v shows its messages",
                  kPerfSetsUp.count());
  }
  return answer;
}

void PerfRun::enable_side_events(int interrupt) {
  (void)perf_->enable_side_events(Deadline::after(kPerfAnswers), interrupt);
}

perf::Answer PerfRun::enable(int interrupt) {
  // This has taken more than 5 s on a machine short of processors.
  const auto answer = perf_->request("enable", Deadline::after(kPerfSetsUp), interrupt);
  if (answer == perf::Answer::kDeadline) {
    logger_.error(
        "perf record did not enable its events within {} s; it may be overloaded: try a lower -F, "
        "fewer events (-e) or fewer targets",
        kPerfSetsUp.count());
  }
  return answer;
}

perf::Answer PerfRun::disable(int interrupt) {
  const auto answer = perf_->request("disable", Deadline::after(kPerfAnswers), interrupt);
  told_to_end_ = answer == perf::Answer::kDeadline || answer == perf::Answer::kInterrupted;
  if (answer == perf::Answer::kDeadline) {
    logger_.warning(
        "perf record did not disable its events within {} s; terminating it, since it may be "
        "overloaded: try a lower -F, fewer events (-e) or fewer targets",
        kPerfAnswers.count());
  }
  if (told_to_end_) {
    perf_->send_signal(SIGTERM);
  }
  return answer;
}

perf::Answer PerfRun::ask_to_stop(int interrupt) {
  return told_to_end_ ? perf::Answer::kAcknowledged
                      : perf_->request("stop", Deadline::after(kPerfAnswers), interrupt);
}

void PerfRun::wait_for_file(Deadline deadline, int interrupt,
                            const std::function<bool()>& give_up) {
  bool gave_up = false;
  while (!gave_up && !deadline.expired() && !perf_->stuck()) {
    if (perf_->wait_for_file(deadline, interrupt)) {
      return;
    }
    gave_up = give_up();
  }
  end_perf();
}

void PerfRun::end_perf() {
  told_to_end_ = false;
  if (perf_->stuck()) {  // SIGTERM would not help: perf would open the file again
    logger_.error(
        "perf record cannot open one of the programs that it recorded (a FIFO in its place, a dead "
        "file system): killing it; -B avoids this");
    perf_->send_signal(SIGKILL);
    (void)perf_->wait(Deadline::after(kPerfAnswers));
    return;
  }
  told_to_end_ = true;
  logger_.warning("perf record has not completed its file: ending it");
  perf_->send_signal(SIGTERM);
  if (!perf_->wait(Deadline::after(kPerfAnswers))) {
    logger_.error("perf record does not end: killing it");
    perf_->send_signal(SIGKILL);
    (void)perf_->wait(Deadline::after(kPerfAnswers));
  }
}

bool PerfRun::completed() {
  const auto status = perf_->try_wait();
  return status && (status->success() || (told_to_end_ && status->shell_status() == 128 + SIGTERM));
}

int PerfRun::report_failure() {
  const auto status = perf_->wait(Deadline::after(kPerfAnswers));
  if (status && status->success()) {
    logger_.warning("perf record ended at once and recorded nothing");
    return 0;
  }
  const bool misused = status == base::ExitStatus{false, kUsage};
  repeat_messages(base::LogLevel::kInfo, misused);
  const std::string text{base::trim(perf_->stderr_text())};
  logger_.error(
      "{}", perf::explain_record_failure(status.value_or(base::ExitStatus{true, SIGKILL}), text));
  return misused ? kUsage : kFailure;
}

void PerfRun::repeat_messages(base::LogLevel level, bool without_usage) const {
  for (const auto line : base::split(base::trim(perf_->stderr_text()), '\n')) {
    if (without_usage && base::trim(line).starts_with("Usage: ")) {
      return;
    }
    if (!line.empty()) {
      logger_.log(level, fmt::format("perf: {}", base::printable(line)));
    }
  }
}

std::vector<std::string> PerfRun::paths() const {
  std::vector<std::string> paths;
  for (auto& file : perf::parse_written_files(perf_->stderr_text(), output_)) {
    paths.push_back(std::move(file.path));
  }
  if (paths.empty() && !output_.several) {
    paths.push_back(output_.path);
  }
  return paths;
}

bool PerfRun::discard(int interrupt) {
  if (!perf_) {
    return true;
  }
  const auto deadline = Deadline::after(kPerfAnswers);
  const bool ended = perf_->request("stop", deadline, interrupt) != perf::Answer::kInterrupted &&
                     perf_->wait(deadline, interrupt);
  repeat_messages(base::LogLevel::kDebug);
  perf_.reset();  // kills perf if it still runs
  rollback_->undo();
  return ended;
}

}  // namespace pyinject::record
