// Whose processes are in a recording, and which of them still live.
#pragma once

#include "pyinject/report/profile.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace pyinject::push {

struct RecordedProcess {
  std::uint32_t pid = 0;
  std::string name;
  bool lives = true;  // false: PID is free, or that of a later process
};

struct LiveProcess {
  std::uint64_t started = 0;  // nanoseconds since boot (CLOCK_BOOTTIME), cut to clock ticks
  std::uint32_t user = 0;     // its real uid
};

// nullopt: no process has PID now.
using LiveProcesses = std::function<std::optional<LiveProcess>(std::uint32_t pid)>;

class Owners {
 public:
  // PROFILE must outlive this. It was recorded on this machine, since it was started.
  Owners(const report::Profile& profile, LiveProcesses live);

  // When the process started which has PID now; nullopt: none has it, or the one that has it
  // started after TIME. If the recording has a clock that only the kernel can read, all times are
  // before TIME.
  [[nodiscard]] std::optional<std::uint64_t> start_of(std::uint32_t pid, std::uint64_t time);
  // The user of the process that had PID at TIME. A process that has exited is its parent's user's,
  // as far as the recording has its fork; nullopt: unknown.
  [[nodiscard]] std::optional<std::uint32_t> user_of(std::uint32_t pid, std::uint64_t time);

 private:
  [[nodiscard]] std::optional<LiveProcess> live_at(std::uint32_t pid, std::uint64_t time);
  [[nodiscard]] const report::Fork* fork_of(std::uint32_t pid, std::uint64_t time) const;

  const report::Profile& profile_;
  LiveProcesses live_;
  std::optional<std::uint64_t> since_boot_;  // to be added to the recording's times, modulo 2^64
  std::map<std::uint32_t, std::optional<LiveProcess>> known_;
};

}  // namespace pyinject::push
