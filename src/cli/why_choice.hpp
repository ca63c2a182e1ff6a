// Chooses the process that `why` examines.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"
#include "why/report.hpp"

#include <optional>
#include <vector>

namespace pyinject::cli {

struct WhyCommand;

struct ChosenProcess {
  python::Target target;
  std::vector<why::Considered> considered;  // if there were several: the busiest first
};

// The busiest Python process of those that COMMAND selects; measures for half a second if there are
// several. nullopt: LOGGER has been told why there is none.
[[nodiscard]] std::optional<ChosenProcess> choose_process(const WhyCommand& command,
                                                          python::Detector& detector,
                                                          base::Logger& logger);

}  // namespace pyinject::cli
