#include "targets/abandoned.hpp"

#include "base/format.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <utility>

namespace pyinject::targets {

std::vector<python::Target> abandoned_targets(python::Detector& detector, base::Logger& logger) {
  std::vector<python::Target> abandoned;
  for (const auto pid : visible_processes()) {
    auto detection = detector.detect(pid);
    auto* const target = std::get_if<python::Target>(&detection);
    if (target == nullptr) {
      continue;
    }
    const auto owner = python::owner_state(*target);
    if (owner == python::OwnerState::kGone) {
      abandoned.push_back(std::move(*target));
    } else if (owner == python::OwnerState::kUnknown) {
      logger.warning(
          "pid {}: left on: the perf-pyinject that switched its trampoline on was in another pid "
          "namespace and may still run",
          pid.value());
    }
  }
  return abandoned;
}

}  // namespace pyinject::targets
