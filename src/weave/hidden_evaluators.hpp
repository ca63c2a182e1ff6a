// Evaluators that are missing in frame-pointer callchains: a function without a frame of its own
// makes the kernel skip its caller.
#pragma once

#include "unwind/address_spaces.hpp"
#include "unwind/unwinder.hpp"
#include "weave/merge.hpp"
#include "weave/sample_work.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::weave {

class HiddenEvaluators {
 public:
  HiddenEvaluators(const unwind::AddressSpaces& spaces, unwind::Unwinder& unwinder)
      : spaces_{spaces}, unwinder_{unwinder} {}

  // Learns from the chain of a sample which functions call the evaluator: those next to evaluators
  // that have their own frames.
  void learn_callers(const SampleWork& work);
  // Learns in which function the thread starts. Call it if no evaluator of WORK is missing.
  void learn_root(const SampleWork& work);

  // Whether an evaluator may have been skipped outside of the function at INDEX.
  [[nodiscard]] bool hides_one(const SampleWork& work, std::size_t index);
  // All such functions.
  [[nodiscard]] std::vector<std::size_t> hiding(const SampleWork& work);
  // EVALUATORS with COUNT more that the chain lacks; empty: their places are unknown. A function
  // hides one evaluator, or all if the frame-pointer chain ends with it.
  [[nodiscard]] std::vector<EvaluatorFrame> with_missing(const SampleWork& work,
                                                         std::vector<EvaluatorFrame> evaluators,
                                                         std::size_t count);

 private:
  using PlaceInFile = std::pair<std::string_view, std::uint64_t>;
  [[nodiscard]] bool keeps_frame(const SampleWork& work, std::size_t index);
  [[nodiscard]] PlaceInFile place_in_file(const SampleWork& work, std::uint64_t address) const;
  [[nodiscard]] bool begins_thread(const SampleWork& work, std::size_t index) const;

  const unwind::AddressSpaces& spaces_;
  unwind::Unwinder& unwinder_;
  // Call sites of the evaluator, and functions without frames in which threads start.
  std::set<PlaceInFile> callers_;
  std::set<PlaceInFile> roots_;
};

}  // namespace pyinject::weave
