// The whole public API of this library but its test doubles (fake/). docs/library.md explains how
// the parts fit together.
//
// For example:
//   int main() {
//     const auto detector = pyinject::python::make_detector();
//     std::cout << pyinject::targets::to_table(pyinject::targets::report_status(*detector, {}));
//   }
#pragma once

#include "pyinject/base/error.hpp"
#include "pyinject/export/formats.hpp"
#include "pyinject/inspect/dump_json.hpp"
#include "pyinject/inspect/dump_text.hpp"
#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/evaluator.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/record/record_session.hpp"
#include "pyinject/record/repeated_recording.hpp"
#include "pyinject/record/stats_report.hpp"
#include "pyinject/record/weave_file.hpp"
#include "pyinject/report/profile.hpp"
#include "pyinject/report/reader.hpp"
#include "pyinject/session_names.hpp"
#include "pyinject/targets/guard.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/targets/stats.hpp"
#include "pyinject/targets/status_report.hpp"
#include "pyinject/targets/stop_requests.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "pyinject/targets/this_session.hpp"
#include "pyinject/version.hpp"
#include "pyinject/watch/process_watch.hpp"
