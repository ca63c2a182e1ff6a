#include "record/sampled_targets.hpp"

#include <utility>

namespace pyinject::session {

using python::Refusal;

std::variant<python::Activation, Refusal> SampledTargets::activate(
    const python::Target& target, const python::ActivateOptions& /*options*/) {
  if (auto refusal = sampler_.add(target)) {
    return std::move(*refusal);
  }
  python::Activation activation;
  activation.mechanism = python::Mechanism::kObserved;
  return activation;
}

std::variant<python::Deactivation, Refusal> SampledTargets::deactivate(
    const python::Target& target, const python::DeactivateOptions& /*options*/) {
  sampler_.remove(target);
  return python::Deactivation{.mechanism = python::Mechanism::kObserved, .stopped = {}};
}

std::variant<python::StackUse, Refusal> SampledTargets::stack_use(
    const python::Target& /*target*/, std::chrono::nanoseconds /*deadline*/) {
  return Refusal{.reason = python::Reason::kActivationFailed,
                 .found = "nothing is stopped with this engine",
                 .remedy = {}};
}

}  // namespace pyinject::session
