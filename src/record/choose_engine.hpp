// Chooses the engine of a recording and runs the recording with it.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_session.hpp"
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

// A string: why the engine cannot be used here.
using OpenEngine = std::function<std::variant<std::unique_ptr<Engine>, std::string>()>;

// This tool never replaces an engine that leaves targets unmodified by one that modifies them, or
// vice versa, unless the user allows it (EngineChoice::kAuto): that is an error. Records with
// PREFERRED. If that cannot be used, or cannot be attached to perf's events: fails if
// plan.engine is kBpf, else records with OTHER. Without PREFERRED: records with OTHER.
[[nodiscard]] RecordResult record_with(const RecordPlan& plan, const OpenEngine& preferred,
                                       const std::function<std::unique_ptr<Engine>()>& other,
                                       base::Logger& logger, targets::StopRequests& stop);

}  // namespace pyinject::record
