// Arguments and environment of a process. A process may overwrite all of it: only for display and
// for guesses.
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

// /proc/PID/cmdline, split at NUL bytes; reads at most 1 MiB. Empty for kernel threads and zombies.
// nullopt: errno says why.
[[nodiscard]] std::optional<std::vector<std::string>> read_cmdline(base::Pid pid);
[[nodiscard]] std::vector<std::string> parse_cmdline(std::string_view text);

// The same, with spaces between them, for display; empty: none, or unreadable.
[[nodiscard]] std::string read_command(base::Pid pid);

// The value of NAME in /proc/PID/environ (as of the exec; reads at most 4 MiB); nullopt: not set,
// or the file is unreadable.
[[nodiscard]] std::optional<std::string> read_environ_value(base::Pid pid, std::string_view name);
[[nodiscard]] std::optional<std::string> parse_environ_value(std::string_view text,
                                                             std::string_view name);

// /proc/PID/cwd, as this process sees it; nullopt: errno says why.
[[nodiscard]] std::optional<std::string> read_working_directory(base::Pid pid);

// The contents of /proc/PID/auxv: AT_RANDOM's address and AT_BASE change with each exec, so equal
// contents mean that the process has not exec'ed. nullopt: errno says why.
[[nodiscard]] std::optional<std::string> read_auxv(base::Pid pid);

}  // namespace pyinject::procfs
