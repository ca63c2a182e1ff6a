#include "inspect/stopped/interleave.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace pyinject::inspect {

namespace {

using Frames = std::vector<Frame>;

Frame native_frame(const NativeFunction& function) {
  return {.function = function.name,
          .file = function.file,
          .native = true,
          .address = function.address};
}

// Index behind the innermost COUNT groups of FRAMES.
std::size_t behind_groups(const Frames& frames, std::size_t count) {
  std::size_t index = 0;
  for (; index < frames.size() && count > 0; ++index) {
    count -= frames[index].outermost ? 1 : 0;
  }
  return index;
}

// EVALUATORS run the groups of PYTHON, one each, from the outermost on.
Frames merge(const Frames& python, const std::vector<NativeFunction>& native,
             const std::vector<weave::EvaluatorFrame>& evaluators) {
  std::vector<std::uint64_t> chain(native.size());  // indexes; those of Python functions follow
  for (std::size_t i = 0; i < chain.size(); ++i) {
    chain[i] = i;
  }
  std::vector<sample::Frame> frames;
  for (std::size_t i = 0; i < python.size(); ++i) {
    frames.push_back({.code = chain.size() + i, .outermost = python[i].outermost});
  }
  // What the Python functions take the place of.
  const auto paired = std::min(evaluators.size(), weave::count_groups(frames));
  std::set<std::uint64_t> replaced;
  auto plain = evaluators;
  for (std::size_t i = 0; i < paired; ++i) {
    auto& one = plain[i];
    if (one.trampoline) {
      replaced.insert(one.behind);
      one.trampoline = false;
    }
    if (one.behind > 0 && native[one.behind - 1].kind == weave::AddressKind::kEvaluator) {
      replaced.insert(one.behind - 1);
    }
  }
  std::vector<std::uint64_t> merged;
  weave::merge(
      chain, plain, frames, [](const auto& frame) { return frame.code; }, merged);
  Frames result;
  for (const auto index : merged) {
    if (index >= native.size()) {
      result.push_back(python[index - native.size()]);
    } else if (!replaced.contains(index)) {
      result.push_back(native_frame(native[index]));
    }
  }
  return result;
}

}  // namespace

void interleave(ThreadSnapshot& thread, const NativeStack& native) {
  std::vector<weave::AddressKind> kinds;
  std::ranges::transform(native.functions, std::back_inserter(kinds), &NativeFunction::kind);
  auto evaluators = weave::evaluators_of(kinds);
  const auto groups =
      static_cast<std::size_t>(std::ranges::count_if(thread.frames, &Frame::outermost));
  thread.native_missing = native.missing;
  if (!native.missing.empty() && groups > evaluators.size()) {
    // The outer Python functions belong to C functions that are missing.
    const auto at = static_cast<std::ptrdiff_t>(behind_groups(thread.frames, evaluators.size()));
    const Frames outer{thread.frames.begin() + at, thread.frames.end()};
    thread.frames.resize(static_cast<std::size_t>(at));
    thread.frames = merge(thread.frames, native.functions, evaluators);
    thread.frames.insert(thread.frames.end(), outer.begin(), outer.end());
    return;
  }
  if (!thread.complete && groups < evaluators.size()) {
    // The outer activations belong to Python functions that are missing.
    evaluators.erase(evaluators.begin(), evaluators.end() - static_cast<std::ptrdiff_t>(groups));
  }
  // The innermost activation may have no Python function yet, or no longer.
  const bool fits = groups <= evaluators.size() &&
                    (evaluators.size() <= groups + 1 || !thread.settled || thread.unreadable);
  if (!fits) {
    thread.native_missing = "they do not fit the Python functions";
    return;
  }
  thread.frames = merge(thread.frames, native.functions, evaluators);
}

}  // namespace pyinject::inspect
