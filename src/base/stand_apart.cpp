#include "base/stand_apart.hpp"

#include "pyinject/base/unique_fd.hpp"

#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace pyinject::base {

void stand_apart() {
  (void)::setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU, SIGTTIN}) {
    (void)std::signal(signal, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::prctl(PR_SET_NAME, "pyinject-guard");
  const UniqueFd score{::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)};
  [[maybe_unused]] const auto written = ::write(score.get(), "-1000", 5);  // needs privilege
}

void keep_only(int kept) {
  const UniqueFd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  (void)::dup2(nothing.get(), STDIN_FILENO);
  (void)::dup2(nothing.get(), STDOUT_FILENO);
  const auto first = static_cast<unsigned>(kept);
  (void)::close_range(STDERR_FILENO + 1, first - 1, 0);
  (void)::close_range(first + 1, ~0U, 0);
}

}  // namespace pyinject::base
