#include "pyinject/targets/stop_signals.hpp"

#include "pyinject/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace pyinject::targets {

StopSignals::StopSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      ignored_before_.push_back(signal);
    }
  }
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  // The kernel drops an ignored signal only while it is not blocked (sig_ignored()).
  if (std::ranges::find(ignored_before_, SIGHUP) == ignored_before_.end()) {
    sigaddset(&stop, SIGHUP);
  }
  // A shell without job control ignores SIGINT for processes started with "&", and an ignored
  // signal never reaches a signalfd. perf resets it in that case; so does this tool.
  (void)::signal(SIGINT, SIG_DFL);
  (void)::signal(SIGTERM, SIG_DFL);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &old_pipe_);
  ::sigprocmask(SIG_BLOCK, &stop, &old_mask_);
  fd_.reset(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.valid()) {
    const int code = errno;
    ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    throw base::SystemError{"cannot make a signalfd", code};
  }
}

StopSignals::~StopSignals() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(ended_.get(), &one, sizeof one);
    thread_.join();
  }
  while (const auto signal = StopRequests::next_with_origin()) {
    (void)::raise(signal->number);  // blocked, therefore pending again
  }
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

void StopSignals::listen(std::function<void(int)> listener) {
  StopRequests::listen(std::move(listener));
  if (thread_.joinable()) {
    return;
  }
  ended_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ended_.valid()) {
    throw base::SystemError{"cannot make an eventfd", errno};
  }
  try {
    thread_ = std::thread{[this] { wait_for_signals(); }};
  } catch (const std::system_error& error) {
    throw base::SystemError{"cannot start the thread that listens to signals",
                            error.code().value()};
  }
}

void StopSignals::wait_for_signals() {
  std::array<pollfd, 2> sources{{{.fd = fd_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = ended_.get(), .events = POLLIN, .revents = 0}}};
  while (sources[1].revents == 0) {
    if (::poll(sources.data(), sources.size(), -1) > 0 && sources[0].revents != 0) {
      take_all();
    }
  }
}

void StopSignals::take_all() {
  const std::scoped_lock lock{mutex_};
  while (const auto signal = take()) {
    add(*signal);
  }
}

std::optional<StopSignal> StopSignals::next_with_origin() {
  if (!thread_.joinable()) {
    return take();
  }
  take_all();  // signals that the thread has not read yet
  return StopRequests::next_with_origin();
}

std::optional<StopSignal> StopSignals::take() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) {
    return std::nullopt;
  }
  return StopSignal{.number = static_cast<int>(info.ssi_signo),
                    .from_kernel = info.ssi_code == SI_KERNEL};
}

}  // namespace pyinject::targets
