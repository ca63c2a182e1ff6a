// One recording from beginning to end.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/record/record_observer.hpp"

namespace pyinject::session {

// perf is started with its events disabled, the targets are activated, the events enabled, and the
// command runs; then the events are disabled, the targets switched off, perf stopped and the map
// files collected. Returns the exit status: the command's, 128 + signal when a signal to this tool
// ended it, 0 when the targets exited, kFailure with a logged reason. Throws base::Error when this
// tool fails. However it ends, no target is left active that was not before; one that could not be
// switched off is named by an error. With kBpf DETECTOR and INJECTOR are not used, nor with kAuto
// where it comes to that engine.
[[nodiscard]] int record(const RecordOptions& options, python::Detector& detector,
                         python::Injector& injector, base::Logger& logger,
                         RecordObserver& observer);

}  // namespace pyinject::session
