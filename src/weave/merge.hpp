// Putting Python frames between the C frames that run them: pure.
#pragma once

#include "weave/python_stacks.hpp"

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

// Number of evaluators from the outermost up to the last one without a trampoline.
[[nodiscard]] std::size_t count_untrampolined(const std::vector<EvaluatorFrame>& evaluators);

// How many groups PYTHON has: each was begun by an activation of its own.
[[nodiscard]] std::size_t count_groups(const std::vector<PythonFrame>& python);

// Number of evaluators that are callers of the function at INDEX of the callchain.
[[nodiscard]] std::size_t count_outer(const std::vector<EvaluatorFrame>& evaluators,
                                      std::size_t index);

// EVALUATORS with ONE inserted in order.
[[nodiscard]] std::vector<EvaluatorFrame> insert_sorted(std::vector<EvaluatorFrame> evaluators,
                                                        const EvaluatorFrame& one);

// Of all PYTHON frames of a thread, each group has an activation of the evaluator in the callchain:
// one for each, or the innermost activation has no group yet or no more.
[[nodiscard]] bool can_pair(const std::vector<EvaluatorFrame>& evaluators,
                            const std::vector<PythonFrame>& python);

// Those that run the groups of PYTHON, which lacks outer ones: the innermost. None: too few, or
// between them, or inside of them, is one of the functions that may HIDE an evaluator, by their
// indexes from the innermost on.
[[nodiscard]] std::vector<EvaluatorFrame> pair_innermost(
    const std::vector<EvaluatorFrame>& evaluators, const std::vector<PythonFrame>& python,
    const std::vector<std::size_t>& hiding);

// The first frame of PYTHON (innermost first) that is in the group number GROUP from the outermost
// on, or outside of it.
[[nodiscard]] std::size_t first_frame_of(const std::vector<PythonFrame>& python, std::size_t group);

// Of a callchain without its outer end: how many groups of PYTHON, from the outermost on, are run
// by activations that it lacks. RUN_BY: the addresses of Python frames one of which the outermost
// of EVALUATORS runs; empty: not known.
[[nodiscard]] std::size_t groups_outside(const std::vector<EvaluatorFrame>& evaluators,
                                         const std::vector<PythonFrame>& python,
                                         const std::vector<std::uint64_t>& run_by);

// CHAIN with the frames of PYTHON (innermost first) at their places, as addresses: ADDRESS gives
// each one's. The groups are paired with the evaluators from the outermost on. Returns how many
// frames were put in.
std::size_t merge(std::span<const std::uint64_t> chain,
                  const std::vector<EvaluatorFrame>& evaluators,
                  const std::vector<PythonFrame>& python,
                  const std::function<std::uint64_t(const PythonFrame&)>& address,
                  std::vector<std::uint64_t>& merged);

}  // namespace pyinject::weave
