#include "pyinject/targets/guard.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "base/stand_apart.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "targets/guard_message.hpp"
#include "targets/guard_process.hpp"
#include "tracee/shared_stops.hpp"

#include <cerrno>
#include <exception>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::targets {

namespace {

constexpr std::chrono::seconds kStarts{60};  // for an overloaded machine
constexpr std::chrono::seconds kGoes{2};

}  // namespace

Guard::Guard(python::Detector& detector, python::Injector& injector, base::Logger& logger,
             const GuardOptions& options)
    : logger_{logger}, of_activate_{options.session == base::ProcessId{}} {
  tracee::share_stops();
  const base::Pid tool{::getpid()};
  auto started = base::start_apart([&](int socket) {
    try {
      injector.prepare();
      if (::write(socket, "", 1) == 1) {
        GuardProcess{detector, injector, logger, options, tool}.run(socket);
      }
    } catch (const std::exception& error) {
      logger.error("guard: {}", error.what());
    }
  });
  pid_ = started.pid;
  socket_ = std::move(started.socket);
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_.value(), 0)));
  pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  const auto deadline = base::Deadline::after(kStarts);
  while (::poll(&ready, 1, deadline.remaining_ms()) < 0 && errno == EINTR) {
  }
  char byte = 0;
  if (ready.revents == 0 || ::read(socket_.get(), &byte, 1) != 1) {
    socket_.reset();
    throw base::Error{"the guard process does not start"};
  }
}

Guard::~Guard() {
  socket_.reset();
  if (!wait_for_its_end() && switches_off_) {
    logger_.warning("guard (pid {}) keeps trying to switch the trampolines off for up to a minute",
                    pid_.value());
  }
}

bool Guard::wait_for_its_end() {
  const auto deadline = base::Deadline::after(kGoes);
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  while (pidfd_.valid()) {
    if (::poll(&ended, 1, deadline.remaining_ms()) == 1) {
      ::waitpid(pid_.value(), nullptr, 0);
      pidfd_.reset();
    } else if (deadline.expired()) {
      return false;
    }
  }
  return true;
}

void Guard::warn_once() {
  if (!std::exchange(warned_, true)) {
    logger_.warning(
        "the guard process has exited: if this tool is killed now, its targets stay on until "
        "perf-pyinject deactivate");
  }
}

void Guard::watch(const python::Target& target) {
  switches_off_ = true;
  GuardMessage message;
  message.kind = GuardMessage::Kind::kWatch;
  message.target = target;
  message.ancestor = ancestor_now(target.id);
  if (of_activate_) {
    // All targets of `activate` have the same owner: a process that merely runs the same executable
    // may be on by somebody else's.
    message.ancestor.executable.reset();
  }
  if (!send(socket_.get(), message)) {
    warn_once();
  }
  base::reached(base::Step::kGuardTold);
}

void Guard::expect_stops() {
  GuardMessage message;
  message.kind = GuardMessage::Kind::kStops;
  if (!send(socket_.get(), message)) {
    warn_once();
  }
}

void Guard::forget(const python::Target& target) {
  GuardMessage message;
  message.kind = GuardMessage::Kind::kForget;
  message.target.id = target.id;
  if (!send(socket_.get(), message)) {
    warn_once();
  }
}

void Guard::keep_map(const python::Target& target, int fd) {
  GuardMessage message;
  message.kind = GuardMessage::Kind::kMap;
  message.target.id = target.id;
  message.map.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!send(socket_.get(), message)) {
    warn_once();
  }
}

void Guard::dismiss() {
  switches_off_ = false;
  GuardMessage message;
  message.kind = GuardMessage::Kind::kDismiss;
  (void)send(socket_.get(), message);
  (void)wait_for_its_end();
  base::reached(base::Step::kGuardDismissed);
}

}  // namespace pyinject::targets
