// From the bytes of the ring to values. Pure; what comes from the kernel was copied from a target,
// and is not trusted.
#pragma once

#include "base/budget.hpp"
#include "bpf/sampler.hpp"
#include "python/stacks/code_description.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace pyinject::bpf {

class Records {
 public:
  // CLOSE: called with a process whose names take more than its share of BUDGET's bytes.
  explicit Records(
      Receiver receiver,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>(),
      std::function<void(std::uint32_t pid)> close = {})
      : receiver_{std::move(receiver)}, budget_{std::move(budget)}, close_{std::move(close)} {}

  // One record of the ring (sampler_records.h). What is none is passed over.
  void take(std::span<const std::byte> record);

 private:
  void take_stack(std::span<const std::byte> record);
  void take_code(std::span<const std::byte> record);
  void take_task(std::span<const std::byte> record);

  [[nodiscard]] bool may_keep(std::uint32_t pid, std::size_t bytes);

  Receiver receiver_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::function<void(std::uint32_t pid)> close_;
  // A code object is told anew of each process that has it, and when the kernel has forgotten it:
  // all the numbers that it got are those of one description, and the first one is used.
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
  std::unordered_map<std::string, std::uint32_t> first_numbers_;  // by what was told of it
  std::unordered_map<std::uint32_t, python::CodeDescription> codes_;
  std::unordered_map<std::uint32_t, std::string> tasks_;
};

}  // namespace pyinject::bpf
