// Identities of processes and threads; never a bare int.
//
// For example:
//   const base::Pid one{4711};
//   std::set<base::ProcessId> seen{target.id};  // not Pid: numbers are reused
#pragma once

#include "pyinject/version.hpp"

#include <compare>
#include <cstdint>

#include <sys/types.h>

namespace pyinject::base {

// A process id in this tool's own pid namespace.
class Pid {
 public:
  constexpr Pid() = default;
  explicit constexpr Pid(pid_t value) : value_{value} {}
  [[nodiscard]] constexpr pid_t value() const { return value_; }
  auto operator<=>(const Pid&) const = default;

 private:
  pid_t value_ = 0;
};

// A thread (task) id in this tool's own pid namespace.
class Tid {
 public:
  constexpr Tid() = default;
  explicit constexpr Tid(pid_t value) : value_{value} {}
  [[nodiscard]] constexpr pid_t value() const { return value_; }
  auto operator<=>(const Tid&) const = default;

 private:
  pid_t value_ = 0;
};

// Pids are reused; a pid together with its start time is not.
struct ProcessId {
  Pid pid;
  std::uint64_t start_time = 0;  // clock ticks since boot: field 22 of /proc/PID/stat, proc(5)
  auto operator<=>(const ProcessId&) const = default;
};

}  // namespace pyinject::base
