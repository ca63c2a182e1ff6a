// The privileges of this process in its environment: in a container, root lacks capabilities and
// does not see all processes. capabilities(7), user_namespaces(7).
#pragma once

#include <string>
#include <string_view>

namespace pyinject::procfs {

enum class Capability {
  kIpcLock = 14,
  kSysPtrace = 19,
  kSysAdmin = 21,
  kSyslog = 34,
  kPerfmon = 38,
  kBpf = 39,
};

// Whether CAPABILITIES, as in /proc/PID/status, contain CAPABILITY. CAP_SYS_ADMIN contains PERFMON
// and BPF: kernel, include/linux/capability.h.
[[nodiscard]] bool holds(unsigned long long capabilities, Capability capability);
// "SYS_PTRACE"
[[nodiscard]] std::string_view name(Capability capability);

// The remedy for a missing capability: "run as root or grant CAP_SYS_PTRACE". Different for a root
// that lacks it, or has it only in its own user namespace.
[[nodiscard]] std::string how_to_get(Capability capability);
// The same for a process with the CAPABILITIES in /proc/PID/status. NESTED: in a user namespace
// that is not the first one.
[[nodiscard]] std::string how_to_get(Capability capability, bool root,
                                     unsigned long long capabilities, bool nested);

// The remedy if the kernel does not permit perf events: "kernel.perf_event_paranoid is 4: RIGHTS,
// or lower it with sysctl kernel.perf_event_paranoid=LEVEL". RIGHTS: a remedy without the sysctl,
// worded as by how_to_get(). An unreadable value is shown as "unknown".
[[nodiscard]] std::string how_to_open_events(std::string_view rights, int level);

// False: this process is in a pid namespace of its own, and does not see all processes.
[[nodiscard]] bool in_first_pid_namespace();

// False: /proc shows the processes and pids of another pid namespace.
[[nodiscard]] bool proc_is_of_our_pid_namespace();

}  // namespace pyinject::procfs
