// Threads that waited when a recording began: of that the recording itself has no sample.
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
  // Instead of SEEN: it may have run while it was read. Only a wait that was so throughout counts.
  static constexpr std::uint64_t kNotAgain = ~std::uint64_t{0};

  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t seen = 0;   // by the recording's clock: it was known to wait then
  bool throughout = false;  // it has not run since, up to the end of the recording
  bool over = false;        // a file of the recording has told when it ran
  // The kernel's functions, innermost first: their addresses, or only the name of the first.
  std::vector<std::uint64_t> kernel = {};
  std::string kernel_name = {};
  // In its own code; 0: not known.
  std::uint64_t program_counter = 0;
  std::uint64_t stack_pointer = 0;
  std::vector<std::byte> stack = {};  // from there on
  bool stack_cut = false;             // there is more
};

struct Waits {
  // STACKS are charged to BUDGET.
  explicit Waits(std::shared_ptr<base::RecordingBudget> budget)
      : stacks{SampledStacks::Matching::kExact, std::move(budget)} {}

  // Numbers of code objects in STACKS have this bit: none of another source has.
  static constexpr std::uint64_t kCode = std::uint64_t{1} << 63U;

  std::vector<WaitingThread> threads;
  SampledStacks stacks;  // the Python stacks, at the times when they were SEEN
};

}  // namespace pyinject::weave
