// /proc/PID/limits: proc_pid_limits(5).
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace pyinject::procfs {

// The soft RLIMIT_FSIZE in TEXT, in bytes: up to this size the process may write files. The maximum
// value: no limit. nullopt: not a limits file.
[[nodiscard]] std::optional<std::uint64_t> parse_file_size_limit(std::string_view text);

// nullopt: it has exited, or this process may not see it.
[[nodiscard]] std::optional<std::uint64_t> read_file_size_limit(base::Pid pid);

}  // namespace pyinject::procfs
