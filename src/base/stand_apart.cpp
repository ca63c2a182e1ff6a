#include "base/stand_apart.hpp"

#include "base/fault.hpp"
#include "pyinject/base/error.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pyinject::base {

namespace {

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

}  // namespace

ChildApart start_apart(const std::function<void(int socket)>& run) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw SystemError{"guard: cannot make a socket", errno};
  }
  UniqueFd own{ends[0]};
  const UniqueFd its{ends[1]};
  const pid_t child = ::fork();
  if (child < 0) {
    throw SystemError{"guard: cannot fork", errno};
  }
  if (child == 0) {
    own.reset();
    set_fault_handler(nullptr);
    stand_apart();
    keep_only(its.get());
    run(its.get());
    ::_exit(0);
  }
  return {.pid = Pid{child}, .socket = std::move(own)};
}

}  // namespace pyinject::base
