#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/python/target.hpp"

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::python {

namespace {

// Of the first pid namespace, in which every process can be seen (kernel PROC_PID_INIT_INO).
constexpr std::uint32_t kFirstNamespace = 0xeffffffc;

// A process that has the pid of OWNER in some namespace, and its start time.
bool is_seen(const base::ProcessId& owner) {
  return std::ranges::any_of(procfs::list_processes(), [&owner](base::Pid pid) {
    const auto stat = procfs::read_stat(pid);
    if (!stat || stat->start_time != owner.start_time ||
        procfs::has_ended({pid, stat->start_time})) {
      return false;
    }
    const auto status = procfs::read_status(pid);
    return status && std::ranges::find(status->namespace_pids, owner.pid.value()) !=
                         status->namespace_pids.end();
  });
}

}  // namespace

std::uint32_t own_pid_namespace() {
  struct stat facts {};
  return ::stat("/proc/self/ns/pid", &facts) == 0 ? static_cast<std::uint32_t>(facts.st_ino) : 0;
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
  if (is_seen(owner)) {
    return OwnerState::kLives;
  }
  const bool all_seen = own == kFirstNamespace && ::geteuid() == 0;
  return noted && all_seen ? OwnerState::kGone : OwnerState::kUnknown;
}

}  // namespace pyinject::python
