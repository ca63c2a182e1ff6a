// Every wait has a deadline. Steady clock: setting the wall clock neither shortens nor prolongs it.
//
// For example:
//   const auto deadline = base::Deadline::after(std::chrono::seconds{5});
//   while (!deadline.expired() && ::poll(nullptr, 0, deadline.remaining_ms()) > 0) {
//   }
#pragma once

#include "pyinject/version.hpp"

#include <algorithm>
#include <chrono>

namespace pyinject::base {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Clock::time_point when) : when_{when} {}
  [[nodiscard]] static Deadline after(std::chrono::nanoseconds span) {
    return Deadline{Clock::now() + span};
  }
  [[nodiscard]] bool expired() const { return Clock::now() >= when_; }
  // Never negative.
  [[nodiscard]] std::chrono::nanoseconds remaining() const {
    return std::max(std::chrono::nanoseconds{0},
                    std::chrono::duration_cast<std::chrono::nanoseconds>(when_ - Clock::now()));
  }
  // For poll(2): rounded up, so that poll() never returns just before the deadline.
  [[nodiscard]] int remaining_ms() const {
    return static_cast<int>(
        std::chrono::ceil<std::chrono::milliseconds>(
            std::min<std::chrono::nanoseconds>(remaining(), std::chrono::hours{24}))
            .count());
  }
  [[nodiscard]] Clock::time_point when() const { return when_; }
  [[nodiscard]] Deadline earlier(Deadline other) const {
    return Deadline{std::min(when_, other.when_)};
  }

 private:
  Clock::time_point when_;
};

}  // namespace pyinject::base
