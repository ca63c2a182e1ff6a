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
  std::string name;  // comm: may contain anything, including blanks and parentheses
  char state = '?';
  base::Pid parent;
  std::uint64_t flags = 0;         // PF_* of the kernel's include/linux/sched.h
  std::uint64_t cpu_ticks = 0;     // utime + stime in clock ticks (sysconf(_SC_CLK_TCK))
  std::uint64_t waited_ticks = 0;  // the same of its children that it has waited for, and of theirs
  std::uint64_t threads = 0;
  std::uint64_t start_time = 0;  // clock ticks since boot
  int processor = 0;             // the one it last ran on
  bool real_time = false;        // real-time scheduling: SCHED_FIFO and the like
  bool has_memory = false;       // false: it exits, or is a kernel thread
  // Where exec placed the first thread's stack: differs between program images, unless address
  // space is not randomized; null without permission to trace, and during an exec.
  base::RemoteAddress stack_begin;
  // Where exec placed the arguments' text; null without permission to trace.
  base::RemoteAddress arguments_begin;
  // Where exec placed the environment; null without permission to trace (ptrace(2), mode read).
  base::RemoteAddress environment_begin;
  base::RemoteAddress environment_end;

  [[nodiscard]] bool kernel_thread() const { return (flags & 0x00200000U) != 0; }  // PF_KTHREAD
};

[[nodiscard]] std::optional<Stat> parse_stat(std::string_view text);

// nullopt: errno is ENOENT or ESRCH (exited), EACCES or EPERM. Throws base::Error if resources are
// too short to find out.
[[nodiscard]] std::optional<Stat> read_stat(base::Pid pid);
[[nodiscard]] std::optional<Stat> read_stat(base::Pid pid, base::Tid tid);

// Now, as start_time.
[[nodiscard]] std::uint64_t ticks_since_boot();

// An identity that a process with a reused pid does not share.
[[nodiscard]] std::optional<base::ProcessId> read_process_id(base::Pid pid);

// True: process ID has provably exited. A zombie without other threads counts as exited. Throws as
// read_stat().
[[nodiscard]] bool has_ended(const base::ProcessId& id);

// Whether process ID has executed another program than the one with STACK_BEGIN, or is just doing
// that: it then has the new program's memory, and no stack yet. Not seen if both stacks begin at
// the same address, as without address space randomization.
[[nodiscard]] bool runs_another(const base::ProcessId& id, base::RemoteAddress stack_begin);
// The same of the process with STAT.
[[nodiscard]] bool is_of_another(const Stat& stat, base::RemoteAddress stack_begin);

// As has_ended(), but waits up to 100 ms for a process that is exiting right now: a process without
// memory causes many other kinds of failure. False also if the state cannot be determined.
[[nodiscard]] bool ends_now(const base::ProcessId& id);

}  // namespace pyinject::procfs
