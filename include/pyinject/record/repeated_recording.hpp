// Consecutive recordings of the same processes, for a service that runs all the time.
//
// For example:
//   record::RecordPlan plan;
//   plan.targets = record::Processes{{pid}};
//   record::RecordObserver nobody;
//   targets::StopSignals stop;
//   const record::RepeatOptions often{.duration = std::chrono::seconds{10},
//                                     .period = std::chrono::minutes{5}};
//   const int status =
//       record::record_repeatedly(plan, often, detector, injector, logger, nobody, stop);
#pragma once

#include "pyinject/record/record_session.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace pyinject::record {

struct RepeatOptions {
  std::chrono::nanoseconds duration{};  // of one recording, starting when events are enabled
  std::chrono::nanoseconds period{};    // from the start of one recording to the start of the next
  std::size_t keep = 12;  // maximum number of files, not counting the one being written
  // A share of one CPU, from the start of one recording to the start of the next. If the tool and
  // perf take more, the next recordings sample less often than the -F of PLAN, which is required
  // then.
  std::optional<double> max_cpu = {};
  // Called after each recording with the status of record().
  std::function<void(int status)> done = {};
  // Called after each recording that is complete, with its file, which stays until KEEP later ones
  // exist. Delays the next recording if it does not return in time.
  std::function<void(const std::string& file)> complete = {};
};

// Like record(), repeatedly; PLAN must have no command, no -o - and no --switch-output. Appends
// the time in UTC to the name given with -o, as perf would: perf.data.2026112022060912. If there
// are more than KEEP files with such names, including those of earlier runs, removes the oldest.
// Between recordings nothing is active, and neither perf nor a guard runs.
//
// A SIGHUP of STOP ends the current recording, or the pause, and starts the next one. SIGTERM and
// SIGINT complete the current recording and end the series; a second one does not wait for its
// post-processing. Returns 128 + that signal; 0 when all processes of PLAN have exited; the
// status of the first recording if that fails. Later failures are logged, and the next recording is
// tried on schedule.
[[nodiscard]] int record_repeatedly(const RecordPlan& plan, const RepeatOptions& repeat,
                                    python::Detector& detector, python::Injector& injector,
                                    base::Logger& logger, RecordObserver& observer,
                                    targets::StopRequests& stop);

}  // namespace pyinject::record
