// Per-thread and machine-wide CPU and fault counters.
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace pyinject::procfs {

// /proc/PID/task/TID/stat and schedstat: proc_pid_stat(5), proc_pid_schedstat(5).
struct ThreadUsage {
  char state = '?';
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;      // that had to wait for a disk
  std::chrono::nanoseconds on_cpu{};   // 0: the kernel does not count it
  std::chrono::nanoseconds for_cpu{};  // runnable, but without a CPU
  std::uint64_t arrivals = 0;          // how often it got a CPU; 0: the kernel does not count it
};

// STAT, SCHEDSTAT: contents of these files.
[[nodiscard]] std::optional<ThreadUsage> parse_thread_usage(std::string_view stat,
                                                            std::string_view schedstat);
// nullopt: it has exited, or access is denied.
[[nodiscard]] std::optional<ThreadUsage> read_thread_usage(base::Pid pid, base::Tid tid);

// /proc/stat: proc_stat(5).
struct MachineUsage {
  std::uint64_t all = 0;     // ticks of all processors
  std::uint64_t idle = 0;    // of these, ticks without a task
  std::uint64_t stolen = 0;  // of these, ticks that the hypervisor gave to others
};
[[nodiscard]] std::optional<MachineUsage> parse_machine_usage(std::string_view text);
[[nodiscard]] std::optional<MachineUsage> read_machine_usage();

// All descendants of a process, also those that exited if their parents have waited for them: as
// time passes, it grows.
struct DescendantsUsage {
  std::size_t processes = 0;          // that exist
  std::chrono::nanoseconds on_cpu{};  // in whole ticks
  // The same of each process that exists, without its own descendants.
  std::map<base::Pid, std::chrono::nanoseconds> living = {};
};
// Throws as read_stat().
[[nodiscard]] DescendantsUsage read_descendants_usage(base::Pid pid);

// kB of a process's memory that are in swap, from its status; nullopt: unknown.
[[nodiscard]] std::optional<std::uint64_t> read_swapped(base::Pid pid);
// The same for kB of its memory that are in RAM.
[[nodiscard]] std::optional<std::uint64_t> read_resident(base::Pid pid);

}  // namespace pyinject::procfs
