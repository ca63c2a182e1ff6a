// Parses the records of the ring buffer. Pure; records contain data copied from a target and are
// not trusted.
#pragma once

#include "base/budget.hpp"
#include "bpf/sampler.hpp"
#include "python/stacks/code_description.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace pyinject::bpf {

class Records {
 public:
  // CLOSE: called with the pid of a process that exceeds its share of BUDGET's bytes for names.
  explicit Records(
      Receiver receiver,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>(),
      std::function<void(std::uint32_t pid)> close = {})
      : receiver_{std::move(receiver)}, budget_{std::move(budget)}, close_{std::move(close)} {}

  // Handles one record of the ring (sampler_records.h). Ignores invalid ones.
  void decode(std::span<const std::byte> record);

 private:
  void decode_stack(std::span<const std::byte> record);
  // A frame for what is not a code object.
  void add_stand_in(std::uint32_t number, const char* name, std::vector<sample::Frame>& frames);
  void decode_code(std::span<const std::byte> record);
  void decode_task(std::span<const std::byte> record);
  void decode_moment(std::span<const std::byte> record);

  [[nodiscard]] bool may_keep(std::uint32_t pid, std::size_t bytes);

  Receiver receiver_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::function<void(std::uint32_t pid)> close_;
  // The BPF program describes a code object again for each process that has it, and after evicting
  // it: maps all numbers of the same description to the first one.
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
  std::unordered_map<std::string, std::uint32_t> first_numbers_;  // by description
  std::unordered_map<std::uint32_t, python::CodeDescription> codes_;
  std::unordered_map<std::uint32_t, std::string> tasks_;
  std::set<std::uint32_t> stand_ins_;  // that were reported
};

}  // namespace pyinject::bpf
