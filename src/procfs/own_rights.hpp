// What this process can do where it runs: in a container root has not all rights, and not all
// processes are seen. capabilities(7), user_namespaces(7).
#pragma once

#include <string>
#include <string_view>

namespace pyinject::procfs {

enum class Capability { kSysPtrace = 19, kPerfmon = 38 };

// What to do for it where it was missing: "run as root or grant CAP_SYS_PTRACE". For root, who
// lacks it or has it in its own user namespace only, something else.
[[nodiscard]] std::string how_to_get(Capability capability);
// The same of a process that has the CAPABILITIES that /proc/PID/status shows.
[[nodiscard]] std::string how_to_get(Capability capability, bool root,
                                     unsigned long long capabilities);

// What to do where the kernel does not let this process open perf events:
// "kernel.perf_event_paranoid is 4: RIGHTS, or lower it with sysctl
// kernel.perf_event_paranoid=LEVEL". RIGHTS is what helps without the sysctl, as how_to_get() words
// it. "unknown" is in place of a value that cannot be read.
[[nodiscard]] std::string how_to_open_events(std::string_view rights, int level);

// False: there are processes that it does not see, since it is in a pid namespace of its own.
[[nodiscard]] bool in_first_pid_namespace();

// False: /proc shows the processes of another pid namespace, by other numbers.
[[nodiscard]] bool proc_is_of_our_pid_namespace();

}  // namespace pyinject::procfs
