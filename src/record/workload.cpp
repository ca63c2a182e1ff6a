#include "record/workload.hpp"

#include "base/format.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/record/plan.hpp"
#include "record/resolve_command.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <poll.h>

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

void Workload::wait_until_ended(int signals, const std::function<bool()>& interrupted) const {
  constexpr std::chrono::seconds kUntilMessage{1};
  if (!process_ || process_->wait(Deadline::after(kUntilMessage))) {
    return;
  }
  const auto pid = process_->pid().value();
  logger_.info("waiting for the end of the command (pid {}); another signal leaves it running",
               pid);
  while (!process_->try_wait()) {
    if (interrupted()) {
      process_->leave();
      logger_.warning("the command (pid {}) goes on", pid);
      return;
    }
    std::array<pollfd, 2> events{pollfd{.fd = process_->pidfd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = signals, .events = POLLIN, .revents = 0}};
    ::poll(events.data(), events.size(), -1);
  }
}

}  // namespace pyinject::record
