#include "weave/merge.hpp"

#include <algorithm>
#include <cstddef>

namespace pyinject::weave {

namespace {

using Frames = std::span<const sample::Frame>;

// Outermost group first; within a group the innermost frame is first.
std::vector<Frames> groups_of(Frames python) {
  std::vector<Frames> groups;
  std::size_t end = python.size();
  while (end > 0) {
    // The outermost frame of this group is at end - 1; the group extends to the next group's
    // outermost frame.
    std::size_t begin = end - 1;
    while (begin > 0 && !python[begin - 1].outermost) {
      --begin;
    }
    groups.push_back(python.subspan(begin, end - begin));
    end = begin;
  }
  return groups;
}

struct Insertion {
  std::size_t at = 0;
  Frames frames;
};

}  // namespace

std::vector<EvaluatorFrame> evaluators_of(std::span<const AddressKind> kinds) {
  std::vector<EvaluatorFrame> result;
  for (std::size_t i = kinds.size(); i-- > 0;) {
    const bool unnamed = kinds[i] == AddressKind::kUnnamedTrampoline;
    if (unnamed || kinds[i] == AddressKind::kTrampoline) {
      const bool there = i > 0 && kinds[i - 1] == AddressKind::kEvaluator;
      result.push_back({.behind = i, .trampoline = true, .unnamed = unnamed && there});
      i -= there ? 1 : 0;
    } else if (kinds[i] == AddressKind::kEvaluator) {
      result.push_back({.behind = i + 1, .trampoline = false});
    }
  }
  return result;
}

std::size_t count_untrampolined(const std::vector<EvaluatorFrame>& evaluators) {
  const auto last = std::find_if(evaluators.rbegin(), evaluators.rend(),
                                 [](const auto& one) { return !one.trampoline; });
  return static_cast<std::size_t>(evaluators.rend() - last);
}

bool has_unnamed(const std::vector<EvaluatorFrame>& evaluators, std::size_t groups) {
  for (std::size_t i = 0; i < evaluators.size(); ++i) {
    const bool named = evaluators[i].trampoline ? !evaluators[i].unnamed : i < groups;
    if (!named) {
      return true;
    }
  }
  return false;
}

std::size_t count_groups(const std::vector<sample::Frame>& python) {
  return groups_of(python).size();
}

std::size_t count_outer(const std::vector<EvaluatorFrame>& evaluators, std::size_t index) {
  return static_cast<std::size_t>(std::ranges::count_if(
      evaluators, [index](const auto& one) { return one.behind > index + 1; }));
}

std::vector<EvaluatorFrame> insert_sorted(std::vector<EvaluatorFrame> evaluators,
                                          const EvaluatorFrame& one) {
  const auto inside = std::ranges::find_if(
      evaluators, [&one](const auto& each) { return each.behind < one.behind; });
  evaluators.insert(inside, one);
  return evaluators;
}

bool can_pair(const std::vector<EvaluatorFrame>& evaluators,
              const std::vector<sample::Frame>& python) {
  const auto groups = count_groups(python);
  return groups <= evaluators.size() && evaluators.size() <= groups + 1;
}

std::vector<EvaluatorFrame> pair_innermost(const std::vector<EvaluatorFrame>& evaluators,
                                           const std::vector<sample::Frame>& python,
                                           const std::vector<std::size_t>& hiding) {
  const auto groups = count_groups(python);
  if (groups > evaluators.size() ||
      (!hiding.empty() && count_outer(evaluators, hiding.front()) > evaluators.size() - groups)) {
    return {};
  }
  return {evaluators.end() - static_cast<std::ptrdiff_t>(groups), evaluators.end()};
}

std::size_t first_frame_of(const std::vector<sample::Frame>& python, std::size_t group) {
  std::size_t groups = 0;
  std::size_t first = python.size();
  while (first > 0 && groups + (python[first - 1].outermost ? 1 : 0) <= group + 1) {
    groups += python[--first].outermost ? 1 : 0;
  }
  return first;
}

std::size_t groups_outside(const std::vector<EvaluatorFrame>& evaluators,
                           const std::vector<sample::Frame>& python,
                           const std::vector<std::uint64_t>& run_by) {
  const auto groups = count_groups(python);
  const auto run = std::ranges::find_if(python, [&run_by](const auto& frame) {
    return std::ranges::count(run_by, frame.activation) != 0;
  });
  if (run != python.end()) {
    const auto outer =
        std::count_if(run, python.end(), [](const auto& frame) { return frame.outermost; });
    return static_cast<std::size_t>(outer) - (outer == 0 ? 0 : 1);
  }
  // Functions entered before the attach belong to the activations without trampolines.
  return groups - std::min(groups, count_untrampolined(evaluators));
}

std::size_t merge(std::span<const std::uint64_t> chain,
                  const std::vector<EvaluatorFrame>& evaluators,
                  const std::vector<sample::Frame>& python,
                  const std::function<std::uint64_t(const sample::Frame&)>& address,
                  std::vector<std::uint64_t>& merged) {
  const auto groups = groups_of(python);
  std::vector<Insertion> insertions;  // outermost first
  for (std::size_t i = 0; i < std::min(groups.size(), evaluators.size()); ++i) {
    const auto& evaluator = evaluators[i];
    const bool doubled = evaluator.trampoline && groups[i].back().outermost;
    const auto known = groups[i].size() - (doubled ? 1 : 0);
    insertions.push_back({.at = evaluator.behind, .frames = groups[i].first(known)});
  }
  std::size_t count = 0;
  std::size_t copied = 0;
  for (std::size_t i = insertions.size(); i-- > 0;) {
    const auto& insertion = insertions[i];
    const auto upto = std::max(copied, std::min(insertion.at, chain.size()));
    const auto part = chain.subspan(copied, upto - copied);
    merged.insert(merged.end(), part.begin(), part.end());
    copied = upto;
    for (const auto& frame : insertion.frames) {
      merged.push_back(address(frame));
      ++count;
    }
  }
  const auto rest = chain.subspan(copied);
  merged.insert(merged.end(), rest.begin(), rest.end());
  return count;
}

}  // namespace pyinject::weave
