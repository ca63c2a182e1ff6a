// What a process was started with. A process may overwrite all of it: for people and for guesses.
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

// /proc/PID/cmdline taken apart at its NUL bytes; no more than 1 MiB of it is read. Empty for
// kernel threads and zombies. nullopt: errno says why.
[[nodiscard]] std::optional<std::vector<std::string>> read_cmdline(base::Pid pid);
[[nodiscard]] std::vector<std::string> parse_cmdline(std::string_view text);

// The value of NAME in /proc/PID/environ (as it was at exec; no more than 4 MiB are read); nullopt
// when it is not set or the file cannot be read.
[[nodiscard]] std::optional<std::string> read_environ_value(base::Pid pid, std::string_view name);
[[nodiscard]] std::optional<std::string> parse_environ_value(std::string_view text,
                                                             std::string_view name);

// /proc/PID/auxv as it is: with AT_RANDOM's address and AT_BASE it differs after each exec, so two
// equal texts mean "the same program still". nullopt: errno says why.
[[nodiscard]] std::optional<std::string> read_auxv(base::Pid pid);

}  // namespace pyinject::procfs
