#include "pyinject/record/plan.hpp"

#include <utility>

namespace pyinject::record {

const std::vector<base::Pid>& RecordPlan::pids() const {
  static const std::vector<base::Pid> none;
  const auto* const processes = std::get_if<Processes>(&targets);
  const auto* const families = std::get_if<Families>(&targets);
  return processes != nullptr ? processes->pids : families != nullptr ? families->roots : none;
}

void RecordPlan::replace_pids(std::vector<base::Pid> pids) {
  if (auto* const processes = std::get_if<Processes>(&targets)) {
    processes->pids = std::move(pids);
  } else if (auto* const families = std::get_if<Families>(&targets)) {
    families->roots = std::move(pids);
  }
}

const targets::Scope& RecordPlan::scope() const {
  static const targets::Scope everybody;
  const auto* const system = std::get_if<System>(&targets);
  return system == nullptr ? everybody : system->scope;
}

}  // namespace pyinject::record
