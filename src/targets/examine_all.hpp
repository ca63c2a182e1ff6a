// Detects many processes, several at a time, so that a slow one does not delay the others.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"

#include <chrono>
#include <vector>

namespace pyinject::targets {

// Total time for all processes that are slow to examine. Named: given by the user, who waits for
// them.
inline constexpr std::chrono::seconds kPatienceNamed{10};
inline constexpr std::chrono::seconds kPatienceUnnamed{2};

struct Examined {
  python::Detection detection;
  std::chrono::nanoseconds duration{};
};

// Each process first gets a little CPU time of its own; those that need more are examined last and
// share PATIENCE. Reason::kNotExamined if that is not enough. Results are in the order of PIDS.
// Throws what DETECTOR throws.
[[nodiscard]] std::vector<Examined> examine_all(python::Detector& detector,
                                                const std::vector<base::Pid>& pids,
                                                const base::Cancellation& cancellation,
                                                std::chrono::nanoseconds patience);

}  // namespace pyinject::targets
