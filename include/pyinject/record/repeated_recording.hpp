// Recordings of the same processes one after the other, for a service that runs all the time.
#pragma once

#include "pyinject/record/record_session.hpp"

#include <chrono>
#include <cstddef>
#include <functional>

namespace pyinject::session {

struct RepeatOptions {
  std::chrono::nanoseconds duration{};  // of one recording, from "events are enabled" on
  std::chrono::nanoseconds period{};    // from the begin of one to that of the next
  std::size_t keep = 12;                // files at most, beside the one that is being written
  // After each one: what record() would have returned.
  std::function<void(int status)> done = {};
};

// As record(), again and again; OPTIONS without a command, -o - or --switch-output. What -o names
// is followed by the time in UTC, as perf would add it: perf.data.2026112022060912. When there are
// more than KEEP of that form, also of an earlier run, the oldest are removed. In between nothing
// is active, and neither perf nor a guard runs.
//
// SIGHUP ends the running recording, or the pause, and the next one begins. SIGTERM and SIGINT
// complete the running one and end it all; a second one does not wait for its stacks. Returns 128 +
// that signal, 0 when all of OPTIONS' processes have exited, and the status of the very first
// recording if that fails: later failures are logged, and the next one is tried at its time.
[[nodiscard]] int record_repeatedly(const RecordOptions& options, const RepeatOptions& repeat,
                                    python::Detector& detector, python::Injector& injector,
                                    base::Logger& logger, RecordObserver& observer);

}  // namespace pyinject::session
