// Putting Python frames between the C frames that run them: pure.
#pragma once

#include "pyinject/weave/python_stacks.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace pyinject::weave {

enum class AddressKind : std::uint8_t {
  kOther,
  kEvaluator,   // in _PyEval_EvalFrameDefault
  kTrampoline,  // one of CPython's: a Python function of its own, called by the frame behind it
};

// The activations of the evaluator in a callchain, from the outermost on.
struct EvaluatorFrame {
  std::size_t behind = 0;   // where frames that it runs belong: at this index of the callchain
  bool trampoline = false;  // the outermost Python frame that it runs is in the callchain already
};

// KINDS of a callchain's addresses, innermost first. A trampoline whose evaluator is not there (its
// frame was hidden) counts as one.
[[nodiscard]] std::vector<EvaluatorFrame> evaluators_of(std::span<const AddressKind> kinds);

// So many from the outermost on end with the last one that has no trampoline.
[[nodiscard]] std::size_t plain_ones(const std::vector<EvaluatorFrame>& evaluators);

// Of all PYTHON frames of a thread, each group has an activation of the evaluator in the callchain:
// one for each, or the innermost activation has no group yet or no more; with ONE_MAY_BE_HIDDEN one
// too few.
[[nodiscard]] bool can_pair(const std::vector<EvaluatorFrame>& evaluators,
                            const std::vector<PythonFrame>& python, bool one_may_be_hidden);

// Those that run the groups of PYTHON, which lacks outer ones: the innermost. None: too few.
[[nodiscard]] std::vector<EvaluatorFrame> innermost_ones(
    const std::vector<EvaluatorFrame>& evaluators, const std::vector<PythonFrame>& python);

// CHAIN with the frames of PYTHON (innermost first) at their places, as addresses: ADDRESS gives
// each one's. The groups are paired with the evaluators from the outermost on. With
// ONE_MAY_BE_HIDDEN a group for which there is no evaluator any more goes directly behind the
// innermost address. Returns how many frames were put in.
std::size_t merge(std::span<const std::uint64_t> chain,
                  const std::vector<EvaluatorFrame>& evaluators,
                  const std::vector<PythonFrame>& python, bool one_may_be_hidden,
                  const std::function<std::uint64_t(const PythonFrame&)>& address,
                  std::vector<std::uint64_t>& merged);

}  // namespace pyinject::weave
