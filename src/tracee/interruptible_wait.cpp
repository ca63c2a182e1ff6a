#include "interruptible_wait.hpp"

#include "procfs/status.hpp"
#include "pyinject/base/error.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::tracee {

namespace {

// A real-time signal not used elsewhere in this tool; its handler does nothing, but makes waitpid
// return EINTR.
int wake_signal() { return SIGRTMIN + 7; }

void install_handler() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = 0;  // no SA_RESTART
    return ::sigaction(wake_signal(), &action, nullptr) == 0;
  }();
  if (!installed) {
    throw base::SystemError{"cannot install a signal handler", errno};
  }
}

bool is_first_thread(base::Tid thread) {
  const auto status = procfs::read_status(base::Pid{thread.value()});
  return status && status->process.value() == thread.value();
}

// False: waitid() failed, errno says why. The stop stays waitable (WNOWAIT): consuming it would
// clear the number of the signal about to be delivered, and if the tracer were killed between
// waitpid() and PTRACE_CONT, the target would lose the signal (kernel wait_task_stopped(),
// ptrace_stop()).
bool peek(base::Tid thread, int options, siginfo_t& info) {
  return ::waitid(P_PID, static_cast<id_t>(thread.value()), &info, options | __WALL | WNOWAIT) == 0;
}

std::optional<int> stop_status(const siginfo_t& info) {
  if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
    return std::nullopt;
  }
  return static_cast<int>(static_cast<unsigned>(info.si_status) << 8U | 0x7fU);
}

// Returns false with errno set on failure.
bool look(base::Tid thread, int& status) {
  siginfo_t info{};
  if (!peek(thread, WEXITED | WSTOPPED, info)) {
    return false;
  }
  if (const auto stop = stop_status(info)) {
    status = *stop;
    return true;
  }
  // It has exited: no signal can be lost any more. Do not reap a first thread: if its parent is
  // this process, reaping would discard its exit status. The exit of the tracing thread releases
  // it.
  if (is_first_thread(thread)) {
    status = info.si_code == CLD_EXITED
                 ? static_cast<int>((static_cast<unsigned>(info.si_status) & 0xffU) << 8U)
                 : info.si_status;
    return true;
  }
  return ::waitpid(thread.value(), &status, __WALL | WNOHANG) == thread.value();
}

}  // namespace

std::optional<int> stop_of(base::Tid thread) {
  siginfo_t info{};
  return peek(thread, WSTOPPED | WNOHANG, info) ? stop_status(info) : std::nullopt;
}

// A timer sends the wake signal to this thread when DEADLINE passes, and then every 5 ms, because
// the first one may arrive just before the wait.
InterruptibleWait::InterruptibleWait(base::Deadline deadline) : deadline_{deadline} {
  install_handler();
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = wake_signal();
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) {
    throw base::SystemError{"cannot create a timer", errno};
  }
  const auto left = deadline.remaining().count() + 1;
  itimerspec when{};
  when.it_value = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  when.it_interval = {.tv_sec = 0, .tv_nsec = 5'000'000};
  ::timer_settime(timer_, 0, &when, nullptr);
}

InterruptibleWait::~InterruptibleWait() { ::timer_delete(timer_); }

Waited InterruptibleWait::wait(base::Tid thread, int& status) const {
  while (true) {
    if (look(thread, status)) {
      return Waited::kChanged;
    }
    if (errno != EINTR) {
      return Waited::kNoChild;
    }
    if (deadline_.expired()) {
      return Waited::kDeadline;
    }
  }
}

}  // namespace pyinject::tracee
