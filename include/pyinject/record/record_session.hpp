// One recording, from start to end.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_observer.hpp"

namespace pyinject::record {

// Starts perf with its events disabled, activates the targets, enables the events and runs the
// command; then disables the events, switches the targets off, stops perf and collects the map
// files. Returns the exit status: the command's; 128 + signal if a signal to this tool ended the
// recording; 0 if the targets exited; kFailure with a logged reason. Throws base::Error if this
// tool fails. However it ends, no target stays active that was not active before; an error lists
// each one that could not be switched off. With kBpf, and with kAuto if it chooses that engine,
// DETECTOR and INJECTOR are unused.
[[nodiscard]] int record(const RecordPlan& plan, python::Detector& detector,
                         python::Injector& injector, base::Logger& logger,
                         RecordObserver& observer);

}  // namespace pyinject::record
