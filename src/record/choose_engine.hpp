// Chooses the engine of a recording and runs the recording with it.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_observer.hpp"
#include "record/engine.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace pyinject::record {

// A value of --engine.
struct EngineName {
  std::string_view name;
  EngineChoice choice = EngineChoice::kAuto;
  bool (*built_in)() = nullptr;      // nullptr: not an engine of its own
  std::string_view needs = {};       // if not built in
  bool knows_gil_and_tasks = false;  // or may choose an engine that does
};
[[nodiscard]] std::span<const EngineName> engine_names();

// DETECTOR and INJECTOR are those of the trampoline. If the requested engine cannot be used, that
// is an error: this tool never replaces an engine that leaves targets unmodified by one that
// modifies them, or vice versa, unless the user allows it (EngineChoice::kAuto). Returns the
// status. SIGNAL: the signal that ended the recording, also if this throws; 0: none.
[[nodiscard]] int record_once(const RecordPlan& plan, python::Detector& detector,
                              python::Injector& injector, base::Logger& logger,
                              RecordObserver& observer, int& signal);

// A string: why the engine cannot be used here.
using OpenEngine = std::function<std::variant<std::unique_ptr<Engine>, std::string>()>;

// Records with PREFERRED. If that cannot be used, or cannot be attached to perf's events: fails if
// plan.engine is kBpf, else records with OTHER. Without PREFERRED: records with OTHER.
[[nodiscard]] int record_with(const RecordPlan& plan, const OpenEngine& preferred,
                              const std::function<std::unique_ptr<Engine>()>& other,
                              base::Logger& logger, int& signal);

}  // namespace pyinject::record
