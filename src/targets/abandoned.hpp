// Targets left by a session that was killed together with its guard.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"

#include <vector>

namespace pyinject::targets {

// Searches all visible processes. If it is unknown whether a target's session still runs, logs a
// warning and skips the target; a target switched on by `activate` has no session.
[[nodiscard]] std::vector<python::Target> abandoned_targets(python::Detector& detector,
                                                            base::Logger& logger);

}  // namespace pyinject::targets
