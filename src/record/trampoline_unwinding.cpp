#include "record/trampoline_unwinding.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "record/extension_modules.hpp"
#include "record/recording_clock.hpp"
#include "targets/pid_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace pyinject::record {

namespace {

constexpr int kLooks = 5;  // reads of each target's Python stacks before the dump size is chosen

// A server may be idle at one moment and deep in a request at the next.
void look_at_stacks(const python::Target& target, CallGraphFacts& facts) {
  auto reader = python::StackReader::of(target);
  auto* const stacks = std::get_if<python::StackReader>(&reader);
  for (int look = 0; stacks != nullptr && look < kLooks; ++look) {
    for (const auto& stack : stacks->read()) {
      facts.python_calls = std::max(facts.python_calls, stack.frames.size());
    }
  }
}

}  // namespace

CallGraphChoice TrampolineUnwinding::choose_for_command(
    const std::optional<CommandInterpreter>& interpreter, const CallGraphWishes& wishes) {
  LaunchedFacts facts{.name = base::printable(plan_.command.front())};
  if (interpreter) {
    facts.name = base::printable(interpreter->name);
    if (interpreter->file.version.major != 0) {
      facts.name += fmt::format(" (Python {})", python::to_string(interpreter->file.version));
    }
    facts.frame_pointers = interpreter->file.frame_pointers;
  }
  auto choice = choose_for_launched(facts, wishes);
  const bool copies = facts.frame_pointers == std::optional{false} && !wishes.chosen;
  if (copies && !interpreter->file.refusal && would_suggest() && bpf_is_available()) {
    choice.note += "; --engine bpf copies no stacks";
  }
  return choice;
}

bool TrampolineUnwinding::would_suggest() const {
  return plan_.engine_is_open && unwinding_ == Unwinding::kAtSamples &&
         !plan_.perf_options->output.pipe && !plan_.perf_options->kcore;
}

bool TrampolineUnwinding::bpf_is_available() {
  return program_ != nullptr || std::holds_alternative<std::unique_ptr<StackSampler>>(
                                    StackSampler::open({}, false, logger_));
}

CallGraphChoice TrampolineUnwinding::choose(const std::vector<python::Target>& targets,
                                            const CallGraphWishes& wishes,
                                            const base::Cancellation& interrupted) {
  if (targets.empty() && plan_.families()) {
    return open_program(wishes, interrupted)
               ? choose_for_sampled(wishes)
               : choose_for_launched({.name = fmt::format("the next process below {}",
                                                          targets::list_pids(plan_.pids()))},
                                     wishes);
  }
  ExtensionModules extensions;
  std::vector<CallGraphFacts> facts;
  for (const auto& target : targets) {
    if (interrupted.stopped()) {
      return {};
    }
    CallGraphFacts one{
        .pid = target.id.pid, .version = target.version, .frame_pointers = target.frame_pointers};
    if (target.frame_pointers) {
      one.extension_without = extensions.without_frame_pointers(target.id.pid).value_or("");
    }
    look_at_stacks(target, one);
    facts.push_back(one);
  }
  const auto needed =
      std::ranges::find_if(facts, [&](const auto& one) { return needs_stack_use(one, wishes); });
  // By frame pointers, the C library hides who writes the perf map.
  const bool later =
      facts.empty() && plan_.whole_system();  // Pythons that start during the recording
  const bool by_program =
      (needed != facts.end() || (plan_.perf_options->event && !facts.empty()) || later) &&
      open_program(wishes, interrupted);
  if (by_program) {
    if (needed != facts.end()) {
      logger_.debug("{}: a BPF program unwinds the stacks", why_not_callchains(*needed, wishes));
    }
    return choose_for_sampled(wishes);
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (interrupted.stopped()) {
      return {};
    }
    if (needs_stack_use(facts[i], wishes)) {
      const auto use = injector_.stack_use(targets[i], kStackUse);
      if (const auto* bytes = std::get_if<python::StackUse>(&use)) {
        facts[i].stack_bytes = bytes->bytes;
      }
    }
  }
  return record::choose_call_graph(facts, wishes);
}

// False: perf has to copy stacks, as for a launched command: in its first milliseconds, the BPF
// program has no tables of its files yet.
bool TrampolineUnwinding::open_program(const CallGraphWishes& wishes,
                                       const base::Cancellation& interrupted) {
  if (unwinding_ == Unwinding::kAfterwards || wishes.chosen || plan_.launches() ||
      plan_.perf_options->output.pipe || plan_.perf_options->kcore) {
    return false;
  }
  auto opened = StackSampler::open({}, true, logger_);
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    logger_.debug("stacks are copied: {}", phrase(*why));
    return false;
  }
  program_ = std::get<std::unique_ptr<StackSampler>>(std::move(opened));
  program_->keep_time_by(recording_clock(*plan_.perf_options));
  program_->add_native_of(wishes, interrupted);
  return true;
}

}  // namespace pyinject::record
