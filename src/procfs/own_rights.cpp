#include "procfs/own_rights.hpp"

#include "procfs/namespaces.hpp"
#include "procfs/status.hpp"
#include "procfs/sysctl.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include <unistd.h>

namespace pyinject::procfs {

std::string_view name(Capability capability) {
  switch (capability) {
    case Capability::kIpcLock:
      return "IPC_LOCK";
    case Capability::kSysPtrace:
      return "SYS_PTRACE";
    case Capability::kSysAdmin:
      return "SYS_ADMIN";
    case Capability::kSyslog:
      return "SYSLOG";
    case Capability::kPerfmon:
      return "PERFMON";
    case Capability::kBpf:
      return "BPF";
  }
  return "";
}

bool holds(unsigned long long capabilities, Capability capability) {
  const auto has = [&](Capability one) {
    return (capabilities >> static_cast<unsigned>(one) & 1U) != 0;
  };
  const bool contained = capability == Capability::kPerfmon || capability == Capability::kBpf;
  return has(capability) || (contained && has(Capability::kSysAdmin));
}

std::string how_to_get(Capability capability, bool root, unsigned long long capabilities,
                       bool nested) {
  if (!root) {
    return fmt::format("run as root or grant CAP_{}", name(capability));
  }
  if (!holds(capabilities, capability)) {
    return fmt::format("root lacks CAP_{0} here: grant it (docker run --cap-add {0})",
                       name(capability));
  }
  return nested ? fmt::format(
                      "root has CAP_{} only inside its user namespace: run perf-pyinject "
                      "in the host's",
                      name(capability))
                : fmt::format(
                      "the kernel refuses although root has CAP_{}: a security module may "
                      "forbid it (/sys/kernel/security/lsm)",
                      name(capability));
}

std::string how_to_get(Capability capability) {
  const auto own = read_status(base::Pid{::getpid()});
  return how_to_get(capability, ::geteuid() == 0, own ? own->effective_capabilities : ~0ULL,
                    own_namespace_number(Namespace::kUser) != kFirstUserNamespace);
}

std::string how_to_open_events(std::string_view rights, int level) {
  constexpr std::string_view kSetting = "kernel.perf_event_paranoid";
  return fmt::format("{0} is {1}: {2}, or lower it with sysctl {0}={3}", kSetting,
                     read_sysctl(kSetting).value_or("unknown"), rights, level);
}

bool in_first_pid_namespace() {
  return own_namespace_number(Namespace::kPid).value_or(kFirstPidNamespace) == kFirstPidNamespace;
}

bool proc_is_of_our_pid_namespace() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self", error);
  return !error && self == std::to_string(::getpid());
}

}  // namespace pyinject::procfs
