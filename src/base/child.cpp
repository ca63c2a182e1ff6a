#include "pyinject/base/child.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::base {

namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw SystemError{"cannot make a pipe", errno};
  }
  return {UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

void restore_signals(const ChildOptions& options) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD, SIGXFSZ}) {
    (void)std::signal(signal, SIG_DFL);
  }
  if (options.ignore_pipe_signal) {
    (void)std::signal(SIGPIPE, SIG_IGN);
  }
  for (const int signal : options.ignored) {
    (void)std::signal(signal, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Runs in the child between fork and exec. False: the child must not continue.
bool prepare_child(const ChildOptions& options, pid_t parent) {
  if (options.own_group && ::setpgid(0, 0) != 0) {
    return false;
  }
  if (options.death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, options.death_signal) != 0) {
      return false;
    }
    if (::getppid() != parent) {
      (void)::raise(options.death_signal);  // the parent died before prctl: no signal will come
    }
  }
  const std::array<int, 3> wanted = {options.stdin_fd, options.stdout_fd, options.stderr_fd};
  for (int fd = 0; fd < 3; ++fd) {
    const int from = wanted[static_cast<std::size_t>(fd)];
    if (from >= 0 && ::dup2(from, fd) < 0) {
      return false;
    }
  }
  return std::ranges::all_of(options.keep, [](int fd) { return ::fcntl(fd, F_SETFD, 0) == 0; });
}

// Our environment with CHANGES applied.
std::vector<std::string> changed_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    if (!changes.contains(std::string{text.substr(0, text.find('='))})) {
      result.emplace_back(text);
    }
  }
  for (const auto& [name, value] : changes) {
    result.push_back(fmt::format("{}={}", name, value));
  }
  return result;
}

std::vector<char*> as_array(const std::vector<std::string>& words) {
  std::vector<char*> array;
  array.reserve(words.size() + 1);
  for (const auto& word : words) {
    array.push_back(const_cast<char*>(word.c_str()));  // NOLINT: exec's old signature
  }
  array.push_back(nullptr);
  return array;
}

// Runs in the child. False: its parent has exited.
bool wait_for_release(int fd) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(fd, &byte, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

}  // namespace

ExitStatus decode_wait_status(int status) {
  if (WIFSIGNALED(status)) {
    return {.signalled = true, .value = WTERMSIG(status)};
  }
  return {.signalled = false, .value = WEXITSTATUS(status)};
}

std::string describe(ExitStatus status) {
  if (status.signalled) {
    return fmt::format("killed by signal {} ({})", status.value, ::strsignal(status.value));
  }
  return fmt::format("exit status {}", status.value);
}

Child::Child(const ChildOptions& options) : name_{options.argv.front()} {
  const auto argv = as_array(options.argv);
  const auto environment = changed_environment(options.environment);
  const auto envp = as_array(environment);
  Pipe failure = make_pipe();  // closed by a successful exec
  Pipe hold = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw SystemError{"cannot fork", errno};
  }
  if (pid == 0) {
    hold.write.reset();
    if (prepare_child(options, parent)) {
      restore_signals(options);
      if (options.held) {
        (void)::prctl(PR_SET_NAME, "perf-exec");  // perf's own name, shown by recordings
      }
      if (!wait_for_release(hold.read.get())) {
        ::_exit(127);
      }
      ::execvpe(argv[0], argv.data(), envp.data());
    }
    const int code = errno;
    [[maybe_unused]] const auto written = ::write(failure.write.get(), &code, sizeof code);
    ::_exit(127);
  }
  pid_ = Pid{pid};
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd_.valid()) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw SystemError{fmt::format("cannot run {}", name_), error};
  }
  failure_ = std::move(failure.read);
  failure.write.reset();
  hold_ = std::move(hold.write);
  if (!options.held) {
    start();
  }
}

// Not before this process has all it needs: a program that runs is not ended for want of a pidfd.
void Child::start() {
  [[maybe_unused]] const auto written = ::write(hold_.get(), "", 1);  // EPIPE: the child was killed
  hold_.reset();
  wait_for_exec();
}

void Child::wait_for_exec() {
  int code = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure_.get(), &code, sizeof code);
  } while (got < 0 && errno == EINTR);
  failure_.reset();
  if (got > 0) {
    ::kill(pid_.value(), SIGKILL);
    int status = 0;
    ::waitpid(pid_.value(), &status, 0);
    status_ = decode_wait_status(status);
    throw SystemError{fmt::format("cannot run {}", name_), code};
  }
}

void Child::release() {
  start();
  released_ = true;
}

Child::~Child() {
  if (!released_ && !try_wait()) {
    send_signal(SIGKILL);
    ::waitpid(pid_.value(), nullptr, 0);
  }
}

std::optional<ExitStatus> Child::try_wait() {
  if (status_) {
    return status_;
  }
  // Only after it has exited: while another thread of this process traces it, waitpid would consume
  // ptrace stops meant for that thread (kernel wait_consider_task()).
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  int status = 0;
  if (::poll(&ended, 1, 0) == 1 && ::waitpid(pid_.value(), &status, WNOHANG) == pid_.value()) {
    status_ = decode_wait_status(status);
  }
  return status_;
}

std::optional<ExitStatus> Child::wait(Deadline deadline) {
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  while (!try_wait() && !deadline.expired()) {
    ::poll(&ended, 1, deadline.remaining_ms());
  }
  return status_;
}

void Child::send_signal(int signal) const {
  if (!status_) {
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
  }
}

CapturedRun run_captured(const std::vector<std::string>& argv, Deadline deadline) {
  constexpr std::size_t kMostOutput = std::size_t{64} << 10;
  Pipe output = make_pipe();
  const UniqueFd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  Child child{{.argv = argv,
               .own_group = true,
               .ignore_pipe_signal = false,
               .death_signal = SIGKILL,
               .stdin_fd = nothing.get(),
               .stdout_fd = output.write.get(),
               .stderr_fd = output.write.get(),
               .keep = {}}};
  output.write.reset();
  CapturedRun run;
  std::array<char, 4096> buffer{};
  pollfd readable{.fd = output.read.get(), .events = POLLIN, .revents = 0};
  while (!deadline.expired() && ::poll(&readable, 1, deadline.remaining_ms()) != 0) {
    const ssize_t got = ::read(output.read.get(), buffer.data(), buffer.size());
    if (got == 0) {
      break;
    }
    if (got > 0 && run.output.size() < kMostOutput) {
      run.output.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  run.status = child.wait(deadline);
  return run;
}

}  // namespace pyinject::base
