#include "support/pty_process.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {

PtyProcess::PtyProcess(std::vector<std::string> argv) {
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (auto& argument : argv) {
    arguments.push_back(argument.data());
  }
  arguments.push_back(nullptr);
  std::vector<std::string> variables{"TERM=xterm"};
  if (starts_record(argv)) {
    variables.push_back(std::string{kEngineVariable} + "=trampoline");
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view{*entry}.starts_with("TERM=")) {
      variables.emplace_back(*entry);
    }
  }
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (auto& variable : variables) {
    environment.push_back(variable.data());
  }
  environment.push_back(nullptr);

  const pid_t parent = ::getpid();
  int master = -1;
  const pid_t pid = ::forkpty(&master, nullptr, nullptr, nullptr);
  if (pid < 0) {
    throw base::SystemError{"cannot fork on a terminal", errno};
  }
  if (pid == 0) {
    for (const int number : {SIGPIPE, SIGINT, SIGQUIT, SIGHUP}) {
      (void)::signal(number, SIG_DFL);
    }
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent) {
      ::execve(arguments[0], arguments.data(), environment.data());
    }
    ::_exit(127);
  }
  terminal_.reset(master);
  ::fcntl(master, F_SETFD, FD_CLOEXEC);
  ::fcntl(master, F_SETFL, O_NONBLOCK);
  pid_ = base::Pid{pid};
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

PtyProcess::~PtyProcess() {
  if (!status_) {
    ::kill(pid_.value(), SIGKILL);
    ::waitpid(pid_.value(), nullptr, 0);
  }
}

void PtyProcess::drain() {
  std::array<char, 4096> buffer{};
  while (terminal_.valid()) {
    const ssize_t got = ::read(terminal_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      screen_.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got == 0 || errno != EINTR) {
      terminal_.reset();  // EIO: no process has the other side open
    }
  }
}

void PtyProcess::look(base::Deadline deadline) {
  // poll(2) ignores negative descriptors.
  std::array<pollfd, 2> events{pollfd{.fd = terminal_.get(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = pidfd_.get(), .events = POLLIN, .revents = 0}};
  ::poll(events.data(), events.size(), deadline.remaining_ms());
  drain();
}

bool PtyProcess::read_until(std::string_view text, base::Deadline deadline) {
  drain();
  while (screen_.find(text) == std::string::npos) {
    if (!terminal_.valid() || deadline.expired()) {
      return false;
    }
    look(deadline);
  }
  return true;
}

void PtyProcess::type(std::string_view text) {
  base::write_all(terminal_.get(), text, "to a terminal");
}

std::optional<ExitStatus> PtyProcess::wait(base::Deadline deadline) {
  while (!status_) {
    int status = 0;
    if (::waitpid(pid_.value(), &status, WNOHANG) == pid_.value()) {
      drain();
      status_ = WIFSIGNALED(status) ? ExitStatus{.code = 0, .signal = WTERMSIG(status)}
                                    : ExitStatus{.code = WEXITSTATUS(status), .signal = 0};
    } else if (deadline.expired()) {
      return std::nullopt;
    } else {
      look(deadline);
    }
  }
  return status_;
}

}  // namespace pyinject::test
