#include "pyinject/session/stop_signals.hpp"

#include "pyinject/base/error.hpp"

#include <cerrno>

#include <sys/signalfd.h>
#include <unistd.h>

namespace pyinject::session {

StopSignals::StopSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      ignored_before_.push_back(signal);
    }
  }
  sigset_t stop;
  sigemptyset(&stop);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&stop, signal);
  }
  // A shell without job control ignores SIGINT for what it starts with "&", and an ignored signal
  // never reaches a signalfd. perf takes it in that case; so does this.
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
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

std::optional<int> StopSignals::next() {
  const auto signal = next_with_origin();
  return signal ? std::optional{signal->number} : std::nullopt;
}

std::optional<StopSignal> StopSignals::next_with_origin() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) {
    return std::nullopt;
  }
  return StopSignal{.number = static_cast<int>(info.ssi_signo),
                    .from_kernel = info.ssi_code == SI_KERNEL};
}

}  // namespace pyinject::session
