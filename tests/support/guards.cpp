#include "support/guards.hpp"

#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "support/patience.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {

namespace {

bool readable(const base::UniqueFd& fd, int timeout_ms) {
  pollfd entry{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

std::optional<base::Pid> child_but(const std::set<base::Pid>& keep) {
  for (const auto pid : procfs::list_processes()) {
    const auto stat = procfs::read_stat(pid);
    if (stat && stat->parent.value() == ::getpid() && !keep.contains(pid)) {
      return pid;
    }
  }
  return std::nullopt;
}

}  // namespace

bool RunningGuard::ended() const { return readable(pidfd, 0); }
bool RunningGuard::ends() const { return readable(pidfd, kPatienceMs); }

Guards::Guards() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

Guards::~Guards() {
  while (const auto pid = child_but({})) {
    ::kill(pid->value(), SIGKILL);
    ::waitpid(pid->value(), nullptr, 0);
  }
}

std::optional<RunningGuard> guard_of(base::Pid parent) {
  for (const auto pid : procfs::list_processes()) {
    const auto stat = procfs::read_stat(pid);
    if (stat && stat->parent == parent && stat->name == "pyinject-guard") {
      return RunningGuard{
          pid, base::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0))}};
    }
  }
  return std::nullopt;
}

void Guards::wait_for_guards() const {
  while (const auto guard = guard_of(base::Pid{::getpid()})) {
    ASSERT_TRUE(guard->ends()) << "guard " << guard->pid.value() << " does not end";
    ::waitpid(guard->pid.value(), nullptr, 0);
  }
}

void Guards::wait_for_orphans(const std::set<base::Pid>& keep) const {
  while (const auto pid = child_but(keep)) {
    const base::UniqueFd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid->value(), 0))};
    ASSERT_TRUE(readable(pidfd, kPatienceMs))
        << "pid " << pid->value() << " (" << procfs::read_stat(*pid)->name << ") does not end";
    ::waitpid(pid->value(), nullptr, 0);
  }
}

}  // namespace pyinject::test
