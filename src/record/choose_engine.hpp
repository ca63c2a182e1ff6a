// Which engine a recording uses, and one recording by it.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/record/options.hpp"
#include "pyinject/record/record_observer.hpp"
#include "record/engine.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace pyinject::session {

// What --engine may name.
struct EngineName {
  std::string_view name;
  EngineChoice choice = EngineChoice::kAuto;
  bool (*built_in)() = nullptr;      // nullptr: it is no engine of its own
  std::string_view needs = {};       // if it is not built in
  bool knows_gil_and_tasks = false;  // or may choose one that does
};
[[nodiscard]] std::span<const EngineName> engine_names();

// DETECTOR and INJECTOR are those of the trampoline. An engine that was asked for and cannot be
// used is an error; the user's choice between one that changes a target and one that does not is
// never made by this tool, unless it is told to (EngineChoice::kAuto).
// Returns the status. SIGNAL: the one that ended it, also when it throws; 0: none.
[[nodiscard]] int record_once(const RecordOptions& options, python::Detector& detector,
                              python::Injector& injector, base::Logger& logger,
                              RecordObserver& observer, int& signal);

// A string: why it cannot be used here.
using OpenEngine = std::function<std::variant<std::unique_ptr<Engine>, std::string>()>;

// One recording by PREFERRED. Where that cannot be used, or cannot be attached to perf's events, by
// OTHER if options.engine is kAuto, else an error. Without PREFERRED: by OTHER.
[[nodiscard]] int record_with(const RecordOptions& options, const OpenEngine& preferred,
                              const std::function<std::unique_ptr<Engine>()>& other,
                              base::Logger& logger, int& signal);

}  // namespace pyinject::session
