// Adds recipes to a recording.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/record/plan.hpp"
#include "record/malloc_probes.hpp"

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::cli {

// The events on allocators that recipes need.
struct RecipeProbes {
  std::optional<record::MallocProbes> functions;  // "malloc"
  std::optional<record::MallocProbes> blocks;     // "memory", if an allocator tells them

  // Those of the recipes NAMES in PIDS. Otherwise the exit status, after a message.
  [[nodiscard]] static std::variant<RecipeProbes, int> of(const std::vector<std::string>& names,
                                                          std::span<const base::Pid> pids,
                                                          base::Logger& logger);
  // Removes them; the destructor does, too, without messages.
  void remove(base::Logger& logger);
};

// Adds the events of the recipes NAMES to RECORD. False, after a message: this machine cannot
// record them.
[[nodiscard]] bool add_recipes(const std::vector<std::string>& names, const RecipeProbes& probes,
                               record::RecordPlan& record, base::Logger& logger);

}  // namespace pyinject::cli
