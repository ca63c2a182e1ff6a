// /proc/PID/status and /proc/PID/task/TID/status: proc_pid_status(5).
#pragma once

#include "pyinject/base/pid.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace pyinject::procfs {

enum class SeccompMode { kNone = 0, kStrict = 1, kFilter = 2 };

struct Status {
  std::string name;   // comm, with newline and backslash escaped by the kernel ("\n", "\\")
  char state = '?';   // R S D T t Z X I P
  base::Pid process;  // Tgid: the process of the task
  base::Tid task;     // Pid: the task itself
  base::Pid parent;
  base::Pid tracer;             // 0: none
  std::array<uid_t, 4> uids{};  // real, effective, saved, file system
  std::array<gid_t, 4> gids{};
  std::vector<gid_t> groups;
  // Its pid in each pid namespace, from that of the procfs mount to its own (Linux 4.1).
  std::vector<pid_t> namespace_pids;
  std::uint64_t threads = 0;
  std::uint64_t descriptor_slots = 0;  // open descriptors have lower numbers
  std::uint64_t effective_capabilities = 0;
  std::uint64_t blocked_signals = 0;  // SigBlk of this task, bit 0 is signal 1
  SeccompMode seccomp = SeccompMode::kNone;
  // Voluntary and involuntary context switches of this task: a changed value shows that it ran.
  std::uint64_t switches = 0;
  std::uint64_t voluntary_switches = 0;  // of these: it began to wait
};

// nullopt: no State, Tgid or Pid line, so not a status file.
[[nodiscard]] std::optional<Status> parse_status(std::string_view text);

// Errors as for read_stat().
[[nodiscard]] std::optional<Status> read_status(base::Pid pid);
[[nodiscard]] std::optional<Status> read_status(base::Pid pid, base::Tid tid);

}  // namespace pyinject::procfs
