#include "session/recording_end.hpp"

#include "base/format.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/perf/record_options.hpp"
#include "pyinject/session/options.hpp"
#include "pyinject/session/workload.hpp"

#include <csignal>
#include <cstdlib>

namespace pyinject::session {

using base::Deadline;

int refuse_command(const std::vector<std::string>& command, base::Logger& logger) {
  if (command.empty()) {
    return 0;
  }
  const char* const path = std::getenv("PATH");
  const auto check = check_command(command, path == nullptr ? "/bin:/usr/bin" : path);
  if (check.status != 0) {
    logger.error("{}", check.problem);
  }
  return check.status;
}

perf::Answer disable_events(perf::PerfProcess& perf, int interrupt, bool& told_to_end,
                            base::Logger& logger) {
  const auto answer = perf.request("disable", Deadline::after(kPerfAnswers), interrupt);
  told_to_end = answer == perf::Answer::kDeadline || answer == perf::Answer::kInterrupted;
  if (answer == perf::Answer::kDeadline) {
    logger.warning(
        "perf record is kept too busy to disable its events, which went on for {} s more: it is "
        "told to end; fewer events help (-F, -e, fewer targets)",
        kPerfAnswers.count());
  }
  if (told_to_end) {
    perf.send_signal(SIGTERM);
  }
  return answer;
}

bool make_perf_end(perf::PerfProcess& perf, base::Logger& logger) {
  if (perf.stuck()) {  // SIGTERM would not help: it opens the file again
    logger.error(
        "perf record cannot open one of the programs that it recorded (a FIFO in its place, a dead "
        "file system): it is killed; -B lets it not look at them");
    perf.send_signal(SIGKILL);
    (void)perf.wait(Deadline::after(kPerfAnswers));
    return false;
  }
  logger.warning("perf record has not completed its file: it is told to end");
  perf.send_signal(SIGTERM);
  if (!perf.wait(Deadline::after(kPerfAnswers))) {
    logger.error("perf record does not end: it is killed");
    perf.send_signal(SIGKILL);
    (void)perf.wait(Deadline::after(kPerfAnswers));
  }
  return true;
}

bool perf_completed(perf::PerfProcess& perf, bool told_to_end) {
  const auto status = perf.try_wait();
  return status && (status->success() || (told_to_end && status->shell_status() == 128 + SIGTERM));
}

void repeat_perf(const perf::PerfProcess& perf, base::LogLevel level, base::Logger& logger) {
  for (const auto line : base::split(base::trim(perf.stderr_text()), '\n')) {
    if (!line.empty()) {
      logger.log(level, fmt::format("perf: {}", base::printable(line)));
    }
  }
}

int report_perf_failure(perf::PerfProcess& perf, base::Logger& logger) {
  const auto status = perf.wait(Deadline::after(kPerfAnswers));
  if (status && status->success()) {
    logger.warning("perf record ended at once and recorded nothing");
    return 0;
  }
  repeat_perf(perf, base::LogLevel::kInfo, logger);
  const std::string text{base::trim(perf.stderr_text())};
  logger.error(
      "{}", perf::explain_record_failure(status.value_or(base::ExitStatus{true, SIGKILL}), text));
  return status == base::ExitStatus{false, kUsage} ? kUsage : kFailure;
}

void make_command_end(base::Child& command, base::Logger& logger) {
  if (command.wait(Deadline::after(kCommandEnds))) {
    return;
  }
  logger.warning("the command (pid {}) does not end after SIGTERM: it is killed",
                 command.pid().value());
  command.send_signal(SIGKILL);
  (void)command.wait(Deadline::after(kCommandEnds));
}

int status_after(EndOfRecording end, base::Child* command, std::size_t targets,
                 base::Logger& logger) {
  switch (end.end) {
    case End::kCommand:
      return command->try_wait().value_or(base::ExitStatus{false, kFailure}).shell_status();
    case End::kSignal:
      return 128 + end.signal;
    case End::kTime:
      return 0;
    case End::kTargets:
      logger.warning("{} exited before the recording was to end",
                     targets == 1 ? "the target" : "all targets");
      return 0;
    case End::kPerf:
      logger.warning("perf record ended by itself before the recording was to end");
      return 0;
  }
  return kFailure;
}

}  // namespace pyinject::session
