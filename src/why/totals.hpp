// What all threads of a process did with their time.
#pragma once

#include "why/accounting.hpp"
#include "why/recording.hpp"

#include <cstdint>

namespace pyinject::why {

struct Totals {
  Times times{};
  std::uint64_t busy = 0;
  [[nodiscard]] std::uint64_t of(Use use) const { return times.at(static_cast<std::size_t>(use)); }
};

// Without threads that only wait for orders, unless no other thread has work, and without the short
// delays of wakeups. RECORDING: as account() leaves it.
[[nodiscard]] Totals totals_of(const Recording& recording, const Accounts& accounts);
// Whether all threads together have next to no work.
[[nodiscard]] bool is_idle(const Totals& totals, std::uint64_t length);
// Less work than this share of one thread is idle.
inline constexpr double kOfThreadIdle = 0.05;

}  // namespace pyinject::why
