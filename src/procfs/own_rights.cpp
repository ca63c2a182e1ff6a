#include "procfs/own_rights.hpp"

#include "procfs/namespaces.hpp"
#include "procfs/status.hpp"
#include "procfs/sysctl.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include <unistd.h>

namespace pyinject::procfs {

namespace {

std::string_view name_of(Capability capability) {
  switch (capability) {
    case Capability::kSysPtrace:
      return "SYS_PTRACE";
    case Capability::kPerfmon:
      return "PERFMON";
  }
  return "";
}

}  // namespace

std::string how_to_get(Capability capability, bool root, unsigned long long capabilities) {
  const auto name = name_of(capability);
  if (!root) {
    return fmt::format("run as root or grant CAP_{}", name);
  }
  if ((capabilities >> static_cast<unsigned>(capability) & 1U) == 0) {
    return fmt::format("root lacks CAP_{0} here: grant it (docker run --cap-add {0})", name);
  }
  return fmt::format(
      "root has CAP_{} only inside its user namespace: run perf-pyinject in the host's", name);
}

std::string how_to_get(Capability capability) {
  const auto own = read_status(base::Pid{::getpid()});
  return how_to_get(capability, ::geteuid() == 0, own ? own->effective_capabilities : ~0ULL);
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
