// Adds recipes to a recording.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/options.hpp"

#include <string>
#include <vector>

namespace pyinject::cli {

// Adds the events of the recipes NAMES to RECORD; PROBES: those of "malloc". False, after a
// message: this machine cannot record them.
[[nodiscard]] bool add_recipes(const std::vector<std::string>& names,
                               const std::vector<std::string>& probes,
                               record::RecordOptions& record, base::Logger& logger);

}  // namespace pyinject::cli
