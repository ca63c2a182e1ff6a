// Which engine a recording uses, and one recording by it.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/session/options.hpp"
#include "pyinject/session/record_observer.hpp"

namespace pyinject::session {

// DETECTOR and INJECTOR are those of the trampoline. An engine that was asked for and cannot be
// used is an error; the user's choice between one that changes a target and one that does not is
// never made by this tool, unless it is told to (Engine::kAuto).
// Returns the status. SIGNAL: the one that ended it, also when it throws; 0: none.
[[nodiscard]] int record_once(const RecordOptions& options, python::Detector& detector,
                              python::Injector& injector, base::Logger& logger,
                              RecordObserver& observer, int& signal);

}  // namespace pyinject::session
