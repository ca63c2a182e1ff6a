// The cgroup of a process: /proc/PID/cgroup, cgroups(7).
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace pyinject::procfs {

// The path in the unified hierarchy (cgroup v2), relative to the root that this process sees,
// without the leading slash: "" is that root. nullopt: TEXT has no such line.
[[nodiscard]] std::optional<std::string> parse_cgroup(std::string_view text);
// nullopt also if the process has exited. Does not throw if resources are short.
[[nodiscard]] std::optional<std::string> read_cgroup(base::Pid pid);
// The directory of the cgroup, its own or an ancestor of that, which stops all its tasks
// (cgroup.freeze). nullopt also if this cannot be read.
[[nodiscard]] std::optional<std::string> read_frozen(base::Pid pid);

}  // namespace pyinject::procfs
