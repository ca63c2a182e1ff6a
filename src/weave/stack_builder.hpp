// Adds the Python functions and the marks to the callchain of one sample.
#pragma once

#include "weave/function_names.hpp"
#include "weave/greenlet_stacks.hpp"
#include "weave/hidden_evaluators.hpp"
#include "weave/merge.hpp"
#include "weave/python_stacks.hpp"
#include "weave/recorded_processes.hpp"
#include "weave/sample_work.hpp"
#include "weave/tally.hpp"
#include "weave/waits.hpp"
#include "weave/weave.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::weave {

class StackBuilder {
 public:
  StackBuilder(const WeaveOptions& options, const RecordingContext& context,
               const RecordedProcesses& processes, FunctionNames& names, unwind::FileFinder& files,
               unwind::Unwinder& unwinder, Tally& tally);

  // Completes WORK's result, of which the user part is its chain so far, and judges it.
  // BY_FRAME_POINTER: as UserChain::read() tells.
  void add_python(SampleWork& work, bool by_frame_pointer);
  // The same for a thread that waited when the recording began.
  void add_python_of(SampleWork& work, const WaitingThread& thread);
  // Adds a frame at the root.
  void mark(SampleWork& work, const std::string& text);

 private:
  using StackKind = perfdata::StackKind;
  [[nodiscard]] bool has_every_sample() const {
    return context_.stacks != nullptr && context_.stacks->has_every_sample();
  }
  void learn_kinds(SampleWork& work) const;
  void add_copied(SampleWork& work);
  void add_around_hole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                       const sample::Stack& stack);
  void count_without_record(SampleWork& work);
  [[nodiscard]] std::optional<StackKind> kind_without_python(const SampleWork& work,
                                                             bool by_frame_pointer) const;
  [[nodiscard]] static StackKind kind_of_whole(const SampleWork& work, const sample::Stack& stack);
  void judge_trampolines(SampleWork& work, bool unnamed, bool by_frame_pointer);
  [[nodiscard]] std::vector<EvaluatorFrame> places_of(const SampleWork& work,
                                                      const std::vector<EvaluatorFrame>& evaluators,
                                                      const sample::Stack& stack,
                                                      bool by_frame_pointer);
  [[nodiscard]] bool is_cut(const SampleWork& work) const;
  // The callchain ends with a mark for the reason why it lacks its outer end.
  [[nodiscard]] bool has_hole(const SampleWork& work) const {
    return work.incomplete_counter != nullptr && processes_.spaces().settled_since(work.sample.pid);
  }
  void add_whole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                 const sample::Stack& stack, bool by_frame_pointer);
  void mark_greenlet(SampleWork& work);
  void add_parents(SampleWork& work, const sample::Stack& stack);
  void mark_root(SampleWork& work, const sample::Stack& stack);
  [[nodiscard]] std::string trampoline_of(const SampleWork& work,
                                          const EvaluatorFrame& evaluator) const;
  [[nodiscard]] sample::Stack python_of(StackQuery query) const;
  [[nodiscard]] AddressKind kind_of(const SampleWork& work, std::uint64_t address) const;

  const WeaveOptions& options_;
  const RecordingContext& context_;
  const RecordedProcesses& processes_;
  FunctionNames& names_;
  WeaveSummary& summary_;
  GreenletStacks greenlets_;
  HiddenEvaluators hidden_;
};

}  // namespace pyinject::weave
