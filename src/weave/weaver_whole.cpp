// Whole Python stacks in callchains, and what else is known of such samples.
#include "base/text.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::weave {

// Where the C functions are not known, or the Python frames cannot be put between them: the
// innermost function and the Python frames.
void Weaver::add_whole(std::span<const std::uint64_t> chain,
                       const std::vector<EvaluatorFrame>& evaluators, const PythonStack& stack,
                       bool by_frame_pointer) {
  const auto address = [&](const PythonFrame& frame) { return address_of(frame, sample_.pid); };
  const auto places = places_of(chain, evaluators, stack, by_frame_pointer);
  if (stack.frames.empty() || !places.empty()) {
    merge(chain, places, stack.frames, address, result_);
  } else {
    result_.push_back(chain.front());
    std::ranges::transform(stack.frames, std::back_inserter(result_), address);
    ++summary_.python_only;
    if (incomplete_counter_ != nullptr && chain.size() > 1 && spaces_.settled_since(sample_.pid)) {
      result_.push_back(chain.back());  // what the C stack lacks
    }
    summary_.python_only_cut += incomplete_counter_ == &summary_.cut ? 1 : 0;
  }
  summary_.extended += stack.frames.empty() ? 0 : 1;
  mark_root(stack);
}

// The activations that run the groups of STACK; none: it is not known which do.
std::vector<EvaluatorFrame> Weaver::places_of(std::span<const std::uint64_t> chain,
                                              const std::vector<EvaluatorFrame>& evaluators,
                                              const PythonStack& stack, bool by_frame_pointer) {
  if (interpreter_ == nullptr || interpreter_->evaluator.empty() ||
      (by_frame_pointer && !interpreter_->frame_pointers)) {
    return {};
  }
  if (stack.truncated) {  // only the inner end tells which activations are theirs
    return pair_innermost(evaluators, stack.frames,
                          by_frame_pointer ? hiding(chain) : std::vector<std::size_t>{});
  }
  const bool cut = is_cut();
  if (cut && kinds_.front() == AddressKind::kEvaluator) {
    return {};  // the one that is being entered could make up for one that is missing
  }
  const auto groups = count_groups(stack.frames);
  if (by_frame_pointer && !cut) {
    if (groups > evaluators.size()) {
      return with_missing(chain, evaluators, groups - evaluators.size());
    }
    if (groups == evaluators.size() && kinds_.front() != AddressKind::kEvaluator) {
      learn_root(chain);
    }
  }
  return can_pair(evaluators, stack.frames) ? evaluators : std::vector<EvaluatorFrame>{};
}

void Weaver::mark_root(const PythonStack& stack) {
  if (stack.truncated) {
    ++summary_.truncated;
    mark("[truncated: python stack]");
  }
  if (options_.flags.tasks && !stack.task.empty()) {
    mark(fmt::format("[task {}]", base::printable(stack.task)));
  }
  if (options_.flags.gil && stack.gil == GilState::kHeld) {
    mark("[GIL held]");
  } else if (options_.flags.gil && stack.gil == GilState::kWaitedFor) {
    mark("[waiting for the GIL]");
  }
}

// A frame at the root.
void Weaver::mark(const std::string& text) {
  if (spaces_.settled_since(sample_.pid)) {  // else perf knows no names in that process
    result_.push_back(synthetic_->address(text));
  }
}

}  // namespace pyinject::weave
