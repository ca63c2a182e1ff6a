// The detections of many processes, several at a time: one that is slow to examine does not keep
// the others waiting.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"

#include <chrono>
#include <vector>

namespace pyinject::session {

// For the processes that are slow to examine, all together. Named: by the user, who waits for them.
inline constexpr std::chrono::seconds kPatienceNamed{10};
inline constexpr std::chrono::seconds kPatienceUnnamed{2};

struct Examined {
  python::Detection detection;
  std::chrono::nanoseconds duration{};
};

// First each process gets a short time of its own; those that need more are examined last, and
// share PATIENCE. What does not come to its end is Reason::kNotExamined. In the order of PIDS.
// Throws what DETECTOR throws.
[[nodiscard]] std::vector<Examined> examine_all(python::Detector& detector,
                                                const std::vector<base::Pid>& pids,
                                                const base::Cancellation& cancellation,
                                                std::chrono::nanoseconds patience);

}  // namespace pyinject::session
