// Targets whose session was killed together with its guard.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"

#include <vector>

namespace pyinject::session {

// Among all visible processes. One of which it is not known whether its session still runs is not
// among them and gets a warning; one that `activate` has switched on has no session.
[[nodiscard]] std::vector<python::Target> abandoned_targets(python::Detector& detector,
                                                            base::Logger& logger);

}  // namespace pyinject::session
