// What clocks show, in nanoseconds (clock_gettime(2)).
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

namespace pyinject::base {

// nullopt: there is no such clock, or its thread has exited.
[[nodiscard]] inline std::optional<std::chrono::nanoseconds> read_clock(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// CLOCK is one that every process has.
[[nodiscard]] inline std::chrono::nanoseconds time_by(clockid_t clock) {
  return read_clock(clock).value_or(std::chrono::nanoseconds{});
}

// The same as a number, as perf's records have it.
[[nodiscard]] inline std::uint64_t now_by(clockid_t clock) {
  return static_cast<std::uint64_t>(time_by(clock).count());
}

}  // namespace pyinject::base
