// Threads that were waiting when a recording started: the recording has no sample of these waits.
#pragma once

#include "base/budget.hpp"
#include "weave/sampled_stacks.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::weave {

struct WaitingThread {
  // Value for SEEN: it may have run while it was read. The wait counts only if `throughout` is set.
  static constexpr std::uint64_t kNotAgain = ~std::uint64_t{0};

  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t seen = 0;   // by the recording's clock: it was waiting then
  bool throughout = false;  // it has not run since, until the end of the recording
  bool over = false;        // a file of the recording has shown when it ran
  // Kernel functions, innermost first: their addresses, or only the name of the first.
  std::vector<std::uint64_t> kernel = {};
  std::string kernel_name = {};
  // In user space; 0: unknown.
  std::uint64_t program_counter = 0;
  std::uint64_t stack_pointer = 0;
  std::vector<std::byte> stack = {};  // starting at STACK_POINTER
  bool stack_cut = false;             // not the whole stack
};

struct Waits {
  // Memory for STACKS is charged to BUDGET.
  explicit Waits(std::shared_ptr<base::RecordingBudget> budget)
      : stacks{SampledStacks::Matching::kExact, std::move(budget)} {}

  // Numbers of code objects in STACKS have this bit; those of other sources do not.
  static constexpr std::uint64_t kCode = std::uint64_t{1} << 63U;

  std::vector<WaitingThread> threads;
  SampledStacks stacks;  // Python stacks, at the times in SEEN
};

}  // namespace pyinject::weave
