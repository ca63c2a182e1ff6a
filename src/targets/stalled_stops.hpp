// Detects stops of targets that do not end.
#pragma once

#include "tracee/shared_stops.hpp"

#include <array>
#include <chrono>

namespace pyinject::targets {

// A stop is stalled if it is open in 6 consecutive polls, which takes 2 s. Counting polls instead
// of time avoids a wrong verdict when the observer was frozen together with the tool.
class StalledStops {
 public:
  static constexpr std::chrono::milliseconds kPollInterval{400};

  // True: one of NOW is stalled.
  [[nodiscard]] bool look(const tracee::OpenStops& now);

 private:
  tracee::OpenStops last_{};
  std::array<int, std::tuple_size_v<tracee::OpenStops>> times_{};
};

}  // namespace pyinject::targets
