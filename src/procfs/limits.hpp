// /proc/PID/limits: proc_pid_limits(5).
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace pyinject::procfs {

// The soft limits of a process; kUnlimited: no limit.
struct Limits {
  static constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t file_size = kUnlimited;      // RLIMIT_FSIZE, bytes: as large as it may write a file
  std::uint64_t open_files = kUnlimited;     // RLIMIT_NOFILE: descriptors have lower numbers
  std::uint64_t address_space = kUnlimited;  // RLIMIT_AS, bytes
  bool operator==(const Limits&) const = default;
};

// nullopt: not a limits file.
[[nodiscard]] std::optional<Limits> parse_limits(std::string_view text);

// nullopt: it has exited, or this process may not see it.
[[nodiscard]] std::optional<Limits> read_limits(base::Pid pid);

// Whether TEXT, a status file, says that SIGNAL is ignored.
[[nodiscard]] bool ignores_signal(std::string_view text, int signal);
[[nodiscard]] bool ignores_signal(base::Pid pid, int signal);

}  // namespace pyinject::procfs
