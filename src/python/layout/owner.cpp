#include "procfs/namespaces.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/python/target.hpp"

#include <algorithm>

#include <unistd.h>

namespace pyinject::python {

namespace {

// Whether a process with the pid and start time of OWNER exists in PID_NAMESPACE; in any namespace
// if none is stored or the process's is unreadable. Two containers may start in one clock tick.
bool is_seen(const base::ProcessId& owner, std::uint32_t pid_namespace) {
  return std::ranges::any_of(procfs::list_processes(), [&](base::Pid pid) {
    const auto stat = procfs::read_stat(pid);
    if (!stat || stat->start_time != owner.start_time ||
        procfs::has_ended({pid, stat->start_time})) {
      return false;
    }
    const auto its = procfs::namespace_number(pid, procfs::Namespace::kPid).value_or(0);
    if (pid_namespace != 0 && its != 0 && its != pid_namespace) {
      return false;
    }
    const auto status = procfs::read_status(pid);
    return status && std::ranges::find(status->namespace_pids, owner.pid.value()) !=
                         status->namespace_pids.end();
  });
}

}  // namespace

std::uint32_t own_pid_namespace() {
  return static_cast<std::uint32_t>(
      procfs::own_namespace_number(procfs::Namespace::kPid).value_or(0));
}

OwnerState owner_state(const Target& target) {
  return target.state == TrampolineState::kOnByUs
             ? owner_state(target.owner, target.owner_namespace, target.inner_pid == target.id.pid)
             : OwnerState::kNone;
}

OwnerState owner_state(const base::ProcessId& owner, std::uint32_t pid_namespace,
                       bool target_in_own) {
  if (owner.pid.value() <= 0) {
    return OwnerState::kNone;
  }
  const auto own = own_pid_namespace();
  const bool noted = pid_namespace != 0;
  if (own != 0 && (noted ? pid_namespace == own : target_in_own)) {
    return procfs::has_ended(owner) ? OwnerState::kGone : OwnerState::kLives;
  }
  if (is_seen(owner, pid_namespace)) {
    return OwnerState::kLives;
  }
  const bool all_seen = own == procfs::kFirstPidNamespace && ::geteuid() == 0;
  return noted && all_seen ? OwnerState::kGone : OwnerState::kUnknown;
}

}  // namespace pyinject::python
