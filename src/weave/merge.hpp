// Inserts Python frames between the C frames that run them. Pure.
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
  kTrampoline,  // a trampoline of CPython: called by the next outer frame, runs one Python function
  kUnnamedTrampoline,  // the same, or code of a JIT: not in the perf map
};

// An activation of the evaluator in a callchain. Lists of them start with the outermost.
struct EvaluatorFrame {
  std::size_t behind = 0;   // frames that it runs belong at this index of the callchain
  bool trampoline = false;  // the callchain already has the outermost Python frame that it runs
  bool unnamed = false;     // which has no name
};

// KINDS of a callchain's addresses, innermost first. A trampoline whose evaluator is missing (its
// frame was hidden) counts as one.
[[nodiscard]] std::vector<EvaluatorFrame> evaluators_of(std::span<const AddressKind> kinds);

// Number of evaluators from the outermost up to the last one without a trampoline.
[[nodiscard]] std::size_t count_untrampolined(const std::vector<EvaluatorFrame>& evaluators);

// Whether one of EVALUATORS runs a function that neither its trampoline names nor one of the
// outermost GROUPS, which are those of the outermost evaluators.
[[nodiscard]] bool has_unnamed(const std::vector<EvaluatorFrame>& evaluators, std::size_t groups);

// Number of groups in PYTHON: each group was started by an activation of its own.
[[nodiscard]] std::size_t count_groups(const std::vector<sample::Frame>& python);

// Number of evaluators that are callers of the function at INDEX of the callchain.
[[nodiscard]] std::size_t count_outer(const std::vector<EvaluatorFrame>& evaluators,
                                      std::size_t index);

// EVALUATORS with ONE inserted in order.
[[nodiscard]] std::vector<EvaluatorFrame> insert_sorted(std::vector<EvaluatorFrame> evaluators,
                                                        const EvaluatorFrame& one);

// Whether each group of PYTHON, all frames of a thread, has an activation in the callchain: there
// are as many of both, or the innermost activation has no group yet or no longer.
[[nodiscard]] bool can_pair(const std::vector<EvaluatorFrame>& evaluators,
                            const std::vector<sample::Frame>& python);

// The innermost evaluators, which run the groups of PYTHON, a stack without its outer end. Empty:
// too few evaluators, or one of the functions that may hide an evaluator is between them or inside
// of them. HIDING: indexes of these functions, innermost first.
[[nodiscard]] std::vector<EvaluatorFrame> pair_innermost(
    const std::vector<EvaluatorFrame>& evaluators, const std::vector<sample::Frame>& python,
    const std::vector<std::size_t>& hiding);

// Index of the first frame of PYTHON (innermost first) that is in group GROUP, counted from the
// outermost, or outside of it.
[[nodiscard]] std::size_t first_frame_of(const std::vector<sample::Frame>& python,
                                         std::size_t group);

// For a callchain without its outer end: number of outermost groups of PYTHON whose activations are
// missing from the callchain. RUN_BY: addresses of Python frames, one of which the outermost of
// EVALUATORS runs; empty: unknown.
[[nodiscard]] std::size_t groups_outside(const std::vector<EvaluatorFrame>& evaluators,
                                         const std::vector<sample::Frame>& python,
                                         const std::vector<std::uint64_t>& run_by);

// Inserts the frames of PYTHON (innermost first) into CHAIN, as addresses given by ADDRESS. Pairs
// groups and evaluators from the outermost on. Returns the number of frames inserted.
std::size_t merge(std::span<const std::uint64_t> chain,
                  const std::vector<EvaluatorFrame>& evaluators,
                  const std::vector<sample::Frame>& python,
                  const std::function<std::uint64_t(const sample::Frame&)>& address,
                  std::vector<std::uint64_t>& merged);

}  // namespace pyinject::weave
