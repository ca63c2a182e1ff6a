// Inserts complete Python stacks into callchains, with the marks for such samples.
#include "base/text.hpp"
#include "weave/stack_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::weave {

// If the C functions are unknown or the Python frames cannot be placed between them: keeps the
// innermost function and the Python frames.
void StackBuilder::add_whole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                             const sample::Stack& stack, bool by_frame_pointer) {
  const auto address = [&](const sample::Frame& frame) {
    return names_.address_of(frame, work.sample.pid, work.sample.time);
  };
  if (work.interpreter != nullptr && work.kind) {
    work.kind = kind_of_whole(work, stack);
  }
  // Frames are ungrouped only during a switch. A greenlet that starts or ends runs no Python
  // function: they are those of another one.
  work.greenlet_switches = work.greenlet_switches || stack.ungrouped ||
                           (work.in_greenlet && evaluators.empty() && !stack.frames.empty());
  const auto places = places_of(work, evaluators, stack, by_frame_pointer);
  if (stack.frames.empty() || !places.empty()) {
    merge(work.chain, places, stack.frames, address, work.result);
  } else {
    work.result.push_back(work.chain.front());
    std::ranges::transform(stack.frames, std::back_inserter(work.result), address);
    ++summary_.python_only;
    if (work.incomplete_counter != nullptr && work.chain.size() > 1 &&
        processes_.spaces().settled_since(work.sample.pid)) {
      work.result.push_back(work.chain.back());  // the mark for what the C stack lacks
    }
    summary_.python_only_cut += work.incomplete_counter == &summary_.cut ? 1 : 0;
  }
  summary_.extended += stack.frames.empty() ? 0 : 1;
  mark_root(work, stack);
}

perfdata::StackKind StackBuilder::kind_of_whole(const SampleWork& work,
                                                const sample::Stack& stack) {
  if (stack.frames.empty()) {
    return stack.truncated ? StackKind::kUnread : StackKind::kNoPython;
  }
  return stack.truncated || work.incomplete_counter != nullptr ? StackKind::kCut
                                                               : StackKind::kComplete;
}

// The activations that run the groups of STACK; empty: unknown.
std::vector<EvaluatorFrame> StackBuilder::places_of(const SampleWork& work,
                                                    const std::vector<EvaluatorFrame>& evaluators,
                                                    const sample::Stack& stack,
                                                    bool by_frame_pointer) {
  if (work.greenlet_switches || work.interpreter == nullptr ||
      work.interpreter->evaluator.empty() ||
      (by_frame_pointer && !work.interpreter->frame_pointers)) {
    return {};
  }
  if (stack.truncated) {  // only the inner end tells which activations run them
    return pair_innermost(evaluators, stack.frames,
                          by_frame_pointer ? hidden_.hiding(work) : std::vector<std::size_t>{});
  }
  const bool cut = is_cut(work);
  if (cut && work.kinds.front() == AddressKind::kEvaluator) {
    return {};  // the activation being entered could be mistaken for a missing one
  }
  const auto groups = count_groups(stack.frames);
  if (by_frame_pointer && !cut) {
    if (groups > evaluators.size()) {
      return hidden_.with_missing(work, evaluators, groups - evaluators.size());
    }
    if (groups == evaluators.size() && work.kinds.front() != AddressKind::kEvaluator) {
      hidden_.learn_root(work);
    }
  }
  return can_pair(evaluators, stack.frames) ? evaluators : std::vector<EvaluatorFrame>{};
}

void StackBuilder::mark_root(SampleWork& work, const sample::Stack& stack) {
  if (stack.truncated) {
    ++summary_.truncated;
    mark(work, "[truncated: python stack]");
  }
  mark_greenlet(work);
  add_parents(work, stack);
  if (options_.flags.tasks && !stack.task.empty()) {
    mark(work, fmt::format("[task {}]", base::printable(stack.task)));
  }
  if (options_.flags.gil && stack.gil == sample::Gil::kHeld) {
    mark(work, "[GIL held]");
  } else if (options_.flags.gil && stack.gil == sample::Gil::kWaitedFor) {
    mark(work, "[waiting for the GIL]");
  }
}

// During a switch the Python functions may be those of another greenlet than the C functions.
void StackBuilder::mark_greenlet(SampleWork& work) {
  if (work.greenlet_switches) {
    mark(work, "[greenlet switch]");
  } else if (work.in_greenlet) {
    mark(work, "[greenlet]");
  }
}

// Below the mark of the greenlet that runs: its parents, whose C functions are not known.
void StackBuilder::add_parents(SampleWork& work, const sample::Stack& stack) {
  if (work.greenlet_switches || !work.in_greenlet || stack.parents.empty() ||
      !processes_.spaces().settled_since(work.sample.pid)) {
    return;
  }
  for (auto frame = stack.parents.begin() + 1; frame != stack.parents.end(); ++frame) {
    work.result.push_back(frame->code == sample::kGreenlet
                              ? names_.address_of_mark("[greenlet]")
                              : names_.address_of(*frame, work.sample.pid, work.sample.time));
  }
}

// Adds a frame at the root.
void StackBuilder::mark(SampleWork& work, const std::string& text) {
  if (processes_.spaces().settled_since(
          work.sample.pid)) {  // otherwise perf finds no names in that process
    work.result.push_back(names_.address_of_mark(text));
  }
}

}  // namespace pyinject::weave
