#include "record/sampled_targets.hpp"

#include <utility>

namespace pyinject::record {

using python::Refusal;

std::variant<python::Activation, Refusal> SampledTargets::attach(
    const python::Target& target, const python::ActivateOptions& /*options*/) {
  if (auto refusal = sampler_.add(target)) {
    return std::move(*refusal);
  }
  return python::Activation{};
}

std::variant<python::Deactivation, Refusal> SampledTargets::release(
    const python::Target& target, const python::DeactivateOptions& /*options*/) {
  sampler_.remove(target);
  return python::Deactivation{};
}

}  // namespace pyinject::record
