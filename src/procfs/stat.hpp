// /proc/PID/stat: proc_pid_stat(5).
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pyinject::procfs {

struct Stat {
  base::Pid pid;
  std::string name;  // comm: may hold anything, also blanks and parentheses
  char state = '?';
  base::Pid parent;
  std::uint64_t flags = 0;      // PF_* of the kernel's include/linux/sched.h
  std::uint64_t cpu_ticks = 0;  // utime + stime in clock ticks (sysconf(_SC_CLK_TCK))
  std::uint64_t threads = 0;
  std::uint64_t start_time = 0;  // clock ticks since boot
  int processor = 0;             // the one it ran on last
  bool real_time = false;        // scheduled before all others: SCHED_FIFO and the like
  // Where exec put the first thread's stack: another place for each program image, unless address
  // space is not randomised; null for who may not trace it.
  base::RemoteAddress stack_begin;
  // Where its environment was put at exec; null for who may not trace it (ptrace(2), mode read).
  base::RemoteAddress environment_begin;
  base::RemoteAddress environment_end;

  [[nodiscard]] bool kernel_thread() const { return (flags & 0x00200000U) != 0; }  // PF_KTHREAD
};

[[nodiscard]] std::optional<Stat> parse_stat(std::string_view text);

// nullopt: errno is ENOENT or ESRCH (it has gone), EACCES or EPERM. Throws base::Error when a
// shortage keeps it from knowing.
[[nodiscard]] std::optional<Stat> read_stat(base::Pid pid);
[[nodiscard]] std::optional<Stat> read_stat(base::Pid pid, base::Tid tid);

// The identity that a reused pid does not have.
[[nodiscard]] std::optional<base::ProcessId> read_process_id(base::Pid pid);

// True: it is proved that process ID is no more. A zombie with no other thread counts as ended.
// Throws as read_stat().
[[nodiscard]] bool has_ended(const base::ProcessId& id);

// The same, and of one that exits at this moment: waits for its end, 100 ms at most. To whoever
// works on it, a process without memory looks like many another failure. False also where that
// cannot be found out.
[[nodiscard]] bool ends_now(const base::ProcessId& id);

}  // namespace pyinject::procfs
