// The manager's operations on targets of the BPF engine: adds the target to those whose stacks are
// read. The target itself is not modified.
#pragma once

#include "pyinject/targets/target_handler.hpp"
#include "record/stack_sampler.hpp"

#include <variant>

namespace pyinject::record {

class SampledTargets : public targets::TargetHandler {
 public:
  explicit SampledTargets(StackSampler& sampler) : sampler_{sampler} {}

  [[nodiscard]] std::variant<python::Activation, python::Refusal> attach(
      const python::Target& target, const python::ActivateOptions& options) override;
  [[nodiscard]] std::variant<python::Deactivation, python::Refusal> release(
      const python::Target& target, const python::DeactivateOptions& options) override;

 private:
  StackSampler& sampler_;
};

}  // namespace pyinject::record
