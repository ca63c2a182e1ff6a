// What the manager does to a target of the second engine: it is added to those that are read, and
// nothing happens to the target itself.
#pragma once

#include "pyinject/python/injector.hpp"
#include "record/stack_sampler.hpp"

#include <chrono>
#include <variant>

namespace pyinject::session {

class SampledTargets : public python::Injector {
 public:
  explicit SampledTargets(StackSampler& sampler) : sampler_{sampler} {}

  [[nodiscard]] std::variant<python::Activation, python::Refusal> activate(
      const python::Target& target, const python::ActivateOptions& options) override;
  [[nodiscard]] std::variant<python::Deactivation, python::Refusal> deactivate(
      const python::Target& target, const python::DeactivateOptions& options) override;
  // Always a refusal: it would take a stop.
  [[nodiscard]] std::variant<python::StackUse, python::Refusal> stack_use(
      const python::Target& target, std::chrono::nanoseconds deadline) override;

 private:
  StackSampler& sampler_;
};

}  // namespace pyinject::session
