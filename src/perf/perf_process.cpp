#include "pyinject/perf/perf_process.hpp"

#include "pyinject/base/error.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace pyinject::perf {

namespace {

constexpr std::size_t kMostText = std::size_t{64} << 10;
constexpr std::chrono::seconds kTimeToComplete{5};
// What perf answers: the word, a newline and a NUL (perf 6.1 to 7.2).
constexpr std::size_t kAckBytes = 5;

std::pair<base::UniqueFd, base::UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw base::SystemError{"perf: cannot make a pipe", errno};
  }
  return {base::UniqueFd{ends[0]}, base::UniqueFd{ends[1]}};
}

void set_nonblocking(int fd) {
  if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    throw base::SystemError{"perf: cannot make a pipe non-blocking", errno};
  }
}

}  // namespace

PerfProcess::PerfProcess(RecordCommand command) {
  auto [command_read, command_write] = make_pipe();
  auto [ack_read, ack_write] = make_pipe();
  auto [error_read, error_write] = make_pipe();
  const base::UniqueFd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  command.control_fd = command_read.get();
  command.ack_fd = ack_write.get();
  child_ = std::make_unique<base::Child>(base::ChildOptions{
      .argv = record_argv(command),
      .own_group = true,
      .death_signal = SIGINT,
      .stdin_fd = nothing.get(),
      .stdout_fd = -1,
      .stderr_fd = error_write.get(),
      .keep = {command_read.get(), command_write.get(), ack_read.get(), ack_write.get()}});
  commands_ = std::move(command_write);
  acks_ = std::move(ack_read);
  errors_ = std::move(error_read);
  set_nonblocking(errors_.get());
}

PerfProcess::~PerfProcess() {
  if (child_ && !child_->try_wait()) {
    child_->send_signal(SIGINT);
    [[maybe_unused]] const auto ended = wait(base::Deadline::after(kTimeToComplete));
  }
}

void PerfProcess::read_stderr() {
  std::array<char, 4096> buffer{};
  while (errors_.valid()) {
    const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got == 0) {
      errors_.reset();
    } else if (got > 0) {
      text_.append(buffer.data(), static_cast<std::size_t>(got));
      if (text_.size() > kMostText) {
        text_.erase(0, text_.size() - kMostText);
      }
    } else if (errno != EINTR) {
      return;
    }
  }
}

// Waits for whichever comes first. True: INTERRUPT is readable.
bool PerfProcess::poll_once(base::Deadline deadline, int interrupt, int ack) {
  std::array<pollfd, 4> fds = {{{.fd = child_->pidfd(), .events = POLLIN, .revents = 0},
                                {.fd = errors_.get(), .events = POLLIN, .revents = 0},
                                {.fd = interrupt, .events = POLLIN, .revents = 0},
                                {.fd = ack, .events = POLLIN, .revents = 0}}};
  ::poll(fds.data(), fds.size(), deadline.remaining_ms());
  read_stderr();
  return fds[2].revents != 0;
}

Answer PerfProcess::request(std::string_view word, base::Deadline deadline, int interrupt) {
  const std::string line = std::string{word} + "\n";
  if (try_wait() || ::write(commands_.get(), line.data(), line.size()) < 0) {
    return Answer::kEnded;
  }
  std::array<char, kAckBytes> ack{};
  while (true) {
    pollfd readable{.fd = acks_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 0) == 1 && (readable.revents & POLLIN) != 0) {
      // Written by perf in one piece that is smaller than PIPE_BUF.
      return ::read(acks_.get(), ack.data(), ack.size()) > 0 ? Answer::kAcknowledged
                                                             : Answer::kEnded;
    }
    if (try_wait()) {
      return Answer::kEnded;
    }
    if (deadline.expired()) {
      return Answer::kDeadline;
    }
    if (poll_once(deadline, interrupt, acks_.get())) {
      return Answer::kInterrupted;
    }
  }
}

std::optional<base::ExitStatus> PerfProcess::try_wait() {
  const auto status = child_->try_wait();
  if (status) {
    read_stderr();
  }
  return status;
}

std::optional<base::ExitStatus> PerfProcess::wait(base::Deadline deadline, int interrupt) {
  while (!try_wait() && !deadline.expired()) {
    if (poll_once(deadline, interrupt, -1)) {
      break;
    }
  }
  return try_wait();
}

}  // namespace pyinject::perf
