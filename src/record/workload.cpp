#include "record/workload.hpp"

#include "base/format.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/record/plan.hpp"
#include "record/resolve_command.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace pyinject::record {

using base::Deadline;

int Workload::check() const {
  if (command_.empty()) {
    return 0;
  }
  const char* const path = std::getenv("PATH");
  const auto check = check_command(command_, path == nullptr ? "/bin:/usr/bin" : path);
  if (check.status != 0) {
    logger_.error("{}", check.problem);
  }
  return check.status;
}

void Workload::hold(const std::vector<int>& ignored,
                    const std::map<std::string, std::string>& environment) {
  process_ = std::make_unique<base::Child>(base::ChildOptions{.argv = command_,
                                                              .stdout_fd = output_,
                                                              .ignored = ignored,
                                                              .environment = environment,
                                                              .held = true});
  held_ = true;
}

bool Workload::start() {
  if (command_.empty()) {
    return true;
  }
  try {
    if (held_) {
      process_->release();
    } else {
      process_ =
          std::make_unique<base::Child>(base::ChildOptions{.argv = command_, .stdout_fd = output_});
    }
    return true;
  } catch (const base::SystemError& error) {
    logger_.error("{}", error.what());
    status_ = error.code() == ENOENT ? 127 : 126;
    return false;
  }
}

void Workload::terminate() const {
  if (process_) {
    process_->send_signal(SIGTERM);
  }
}

void Workload::wait_or_kill() const {
  if (!process_ || process_->wait(Deadline::after(kCommandEnds))) {
    return;
  }
  logger_.warning("the command (pid {}) does not end after SIGTERM: killing it",
                  process_->pid().value());
  process_->send_signal(SIGKILL);
  (void)process_->wait(Deadline::after(kCommandEnds));
}

}  // namespace pyinject::record
