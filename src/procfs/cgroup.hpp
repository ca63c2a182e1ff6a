// The cgroup of a process: /proc/PID/cgroup, cgroups(7).
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

// The path in the unified hierarchy (cgroup v2), relative to the root that this process sees,
// without the leading slash: "" is that root. With a CONTROLLER, the path in its hierarchy
// (version 1). nullopt: TEXT has no such line.
[[nodiscard]] std::optional<std::string> parse_cgroup(std::string_view text,
                                                      std::string_view controller = "");
// nullopt also if the process has exited. Does not throw if resources are short.
[[nodiscard]] std::optional<std::string> read_cgroup(base::Pid pid);
// The directory of the cgroup, its own or an ancestor of that, which stops all its tasks
// (cgroup.freeze). nullopt also if this cannot be read.
[[nodiscard]] std::optional<std::string> read_frozen(base::Pid pid);

// A cgroup that limits the CPU time of its tasks.
struct CpuLimit {
  std::string cgroup = {};               // its directory
  double cpus = 0;                       // how many its tasks may use at a time
  std::chrono::nanoseconds throttled{};  // how long they had to wait for that, over all CPUs
};
// MAX: "QUOTA PERIOD" in microseconds, as in cpu.max. STAT: contents of cpu.stat. nullopt: no
// limit. https://docs.kernel.org/scheduler/sched-bwc.html has the names of version 1.
[[nodiscard]] std::optional<CpuLimit> parse_cpu_limit(std::string_view max, std::string_view stat);
// Of its cgroup and the ancestors of that, those that this process sees, in both versions.
[[nodiscard]] std::vector<CpuLimit> read_cpu_limits(base::Pid pid);

}  // namespace pyinject::procfs
