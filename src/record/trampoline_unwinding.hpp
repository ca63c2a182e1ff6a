// How the C functions of targets with the trampoline get into their samples: by frame pointers, a
// BPF program, or perf's copies of the stacks.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/record/plan.hpp"
#include "record/call_graph.hpp"
#include "record/command_interpreter.hpp"
#include "record/stack_sampler.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace pyinject::record {

// When stacks are unwound that callchains do not show.
enum class Unwinding {
  kAtSamples,   // by a BPF program, if possible, else afterwards
  kAfterwards,  // from copies
};

class TrampolineUnwinding {
 public:
  TrampolineUnwinding(const RecordPlan& plan, python::Injector& injector, base::Logger& logger,
                      Unwinding unwinding)
      : plan_{plan}, injector_{injector}, logger_{logger}, unwinding_{unwinding} {}

  // As Engine::choose_call_graph(), for processes that run, also if there are no TARGETS yet. Stops
  // them for a moment if it has to know how much of their stacks they use.
  [[nodiscard]] CallGraphChoice choose(const std::vector<python::Target>& targets,
                                       const CallGraphWishes& wishes,
                                       const base::Cancellation& interrupted);
  // INTERPRETER: that the plan's command will run; nullopt: unknown.
  [[nodiscard]] CallGraphChoice choose_for_command(
      const std::optional<CommandInterpreter>& interpreter, const CallGraphWishes& wishes);
  // The program that was chosen; nullptr: perf's callchains or copies have the C functions.
  [[nodiscard]] StackSampler* program() const { return program_.get(); }

 private:
  [[nodiscard]] bool would_suggest() const;
  [[nodiscard]] bool bpf_is_available();
  [[nodiscard]] bool open_program(const CallGraphWishes& wishes,
                                  const base::Cancellation& interrupted);

  const RecordPlan& plan_;
  python::Injector& injector_;
  base::Logger& logger_;
  const Unwinding unwinding_;
  std::unique_ptr<StackSampler> program_;
};

}  // namespace pyinject::record
