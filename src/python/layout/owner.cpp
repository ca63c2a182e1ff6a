#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/python/target.hpp"

#include <algorithm>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::python {

namespace {

// Of the first pid namespace, in which every process can be seen (kernel PROC_PID_INIT_INO).
constexpr std::uint32_t kFirstNamespace = 0xeffffffc;

std::uint32_t pid_namespace_of(const std::string& process) {
  struct stat facts {};
  return ::stat(("/proc/" + process + "/ns/pid").c_str(), &facts) == 0
             ? static_cast<std::uint32_t>(facts.st_ino)
             : 0;
}

// A living process with the start time of OWNER that has its pid in PID_NAMESPACE, or in any where
// none is noted or the process's cannot be read. Two containers may start in one clock tick.
bool is_seen(const base::ProcessId& owner, std::uint32_t pid_namespace) {
  return std::ranges::any_of(procfs::list_processes(), [&](base::Pid pid) {
    const auto stat = procfs::read_stat(pid);
    if (!stat || stat->start_time != owner.start_time ||
        procfs::has_ended({pid, stat->start_time})) {
      return false;
    }
    const auto its = pid_namespace_of(std::to_string(pid.value()));
    if (pid_namespace != 0 && its != 0 && its != pid_namespace) {
      return false;
    }
    const auto status = procfs::read_status(pid);
    return status && std::ranges::find(status->namespace_pids, owner.pid.value()) !=
                         status->namespace_pids.end();
  });
}

}  // namespace

std::uint32_t own_pid_namespace() { return pid_namespace_of("self"); }

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
  const bool all_seen = own == kFirstNamespace && ::geteuid() == 0;
  return noted && all_seen ? OwnerState::kGone : OwnerState::kUnknown;
}

}  // namespace pyinject::python
