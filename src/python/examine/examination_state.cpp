#include "base/text.hpp"
#include "procfs/cmdline.hpp"
#include "python/examine/code_arenas.hpp"
#include "python/examine/examination.hpp"
#include "python/examine/map_file_check.hpp"
#include "python/examine/resource_check.hpp"
#include "python/layout/code_probe.hpp"
#include "python/layout/runtime_view.hpp"
#include "python/layout/version_policy.hpp"
#include "tracee/stopped_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <vector>

namespace pyinject::python {

namespace {

// -X perf_jit (3.13 and later) maps the start of its file, so that perf records its name.
void refuse_jit_dump(const Examined& process) {
  const auto file = fmt::format("/jit-{}.dump", process.target.inner_pid.value());
  const bool writes_dump = std::ranges::any_of(process.maps, [&](const procfs::Mapping& mapping) {
    return mapping.executable && mapping.path.ends_with(file);
  });
  if (writes_dump) {
    throw Refuse{Reason::kMapNotWritten,
                 fmt::format("its trampoline writes /tmp{} instead of a perf map (-X perf_jit or "
                             "PYTHON_PERF_JIT_SUPPORT)",
                             file),
                 "record --engine bpf, or start it with -X perf"};
  }
}

// From 3.13.12, 3.14 and 3.15 on, each activation registers one more code watcher, which stays;
// with two of them trampolines are freed while in use. So a watcher that belongs to the interpreter
// shows that the program had the trampoline on and switched it off.
void check_watchers(const Examined& process) {
  if (!adds_code_watchers(process.target.version)) {
    return;
  }
  constexpr std::string_view kAccessor = "PyCode_ClearWatcher";
  constexpr std::size_t kWatchers = 8;  // CODE_MAX_WATCHERS
  const auto array = process.interpreter.file->defines(kAccessor)
                         ? process.probe_code(kAccessor, first_element_compared)
                         : std::nullopt;
  if (!array || *array % sizeof(std::uint64_t) != 0 || *array > process.layout.interpreter_size) {
    throw Refuse{Reason::kLayoutMismatch,
                 fmt::format("the watchers of code objects are at {} in {}",
                             array ? std::to_string(*array) : "an unknown offset", kAccessor),
                 process.remedy_for_layout()};
  }
  for (std::size_t i = 0; i < kWatchers; ++i) {
    const auto watcher = process.memory->read_pointer(process.target.addresses.main_interpreter +
                                                      (*array + i * sizeof(std::uint64_t)));
    if (watcher && *watcher >= process.target.text_begin && *watcher < process.target.text_end) {
      throw Refuse{Reason::kActivatedBefore,
                   "it has switched its own trampoline on and off before (-X perf or its own call)",
                   "a second activation crashes this Python (cpython gh-146522): restart it, or "
                   "keep it from calling sys.deactivate_stack_trampoline()"};
    }
  }
}

// Distance from THREAD down to the end of its stack. glibc stores the thread's descriptor, THREAD,
// at the top of the stack. The mapping may extend above (the kernel merges neighbors), but not
// below the guard. Maximum value if THREAD is not mapped.
std::uint64_t stack_below(const std::vector<procfs::Mapping>& maps, std::uint64_t thread) {
  const auto* stack = procfs::find_mapping(maps, base::RemoteAddress{thread});
  return stack == nullptr ? std::numeric_limits<std::uint64_t>::max()
                          : thread - stack->begin.value();
}

void check_stacks(const Examined& process) {
  if (checks_c_stack(process.target.version)) {
    return;
  }
  constexpr std::uint64_t kDescriptor = std::uint64_t{64} << 10U;  // plus thread-local data
  constexpr std::uint64_t kLeast = (std::uint64_t{1} << 20U) - kDescriptor;
  const RuntimeView view{*process.memory, process.layout, process.target.addresses.runtime};
  const auto main_thread = view.main_thread();
  std::vector<std::uint64_t> small;
  for (const auto& thread : view.threads(process.target.addresses.main_interpreter)) {
    // The main thread's stack grows up to its resource limit.
    if (thread.thread_id != main_thread && stack_below(process.maps, thread.thread_id) < kLeast) {
      small.push_back(thread.thread_id);
    }
  }
  if (small.empty()) {
    return;
  }
  // MAPS_ was read before the threads: the address range may have had another use then. Check again
  // for the threads that still exist.
  const auto maps = procfs::read_maps(process.pid).value_or(process.maps);
  std::unordered_set<std::uint64_t> now;
  for (const auto& thread : view.threads(process.target.addresses.main_interpreter)) {
    now.insert(thread.thread_id);
  }
  for (const auto thread : small) {
    const auto size = stack_below(maps, thread);
    if (now.contains(thread) && size < kLeast) {
      throw Refuse{Reason::kSmallStack,
                   fmt::format("a Python thread has a stack of only {} KiB", size >> 10U),
                   fmt::format("with the trampoline each Python call takes C stack, and Python "
                               "{}.{} detects no overflow: give threads at least 1 MiB "
                               "(threading.stack_size)",
                               process.target.version.major, process.target.version.minor)};
    }
  }
}

// A tracer that has gone, or another perf-pyinject, is no obstacle: the stop waits for it.
void refuse_traced(const Examined& process) {
  if (process.status.tracer.value() == 0 || tracee::traces_briefly(process.status.tracer)) {
    return;
  }
  if (const auto tracer = procfs::read_status(process.status.tracer)) {
    throw Refuse{Reason::kTraced,
                 fmt::format("pid {} ({}) traces it", process.status.tracer.value(),
                             base::printable(tracer->name)),
                 "detach that debugger or tracer first"};
  }
}

// Its trampolines must stay mapped until it exits. Daemon threads cannot be recognized from
// outside, so any second Python thread counts.
void check_exit(Examined& process) {
  if (process.layout.code_arenas == 0) {
    return;
  }
  const auto arenas = read_code_arenas(
      *process.memory, process.target.addresses.runtime + process.layout.code_arenas, process.maps);
  const auto* const problem = std::get_if<std::string>(&arenas);
  if (problem == nullptr) {
    return;
  }
  const RuntimeView view{*process.memory, process.layout, process.target.addresses.runtime};
  if (const auto threads = view.threads(process.target.addresses.main_interpreter).size();
      threads > 1) {
    throw Refuse{
        Reason::kUnsafeExit,
        fmt::format("its trampolines could not be kept mapped until it exits ({}), and it has {} "
                    "Python threads: daemon threads would crash it at its exit (cpython gh-143228)",
                    *problem, threads),
        "record --engine bpf"};
  }
  process.target.warnings.push_back(unpinned_note(*problem));
}

// Only what its command line tells: the files of modules, and functions that it makes later, may
// have such names, too (docs/limits.md).
void check_names(const Examined& process) {
  if (!fails_on_odd_names(process.target.version)) {
    return;
  }
  const auto refuse_odd = [](std::string_view name) {
    if (!base::is_utf8(name)) {
      throw Refuse{Reason::kNameNotUtf8, fmt::format("{} is not UTF-8", base::printable(name)),
                   "this Python would raise errors in the program (cpython gh-156114): record "
                   "--engine bpf"};
    }
  };
  refuse_odd(procfs::read_working_directory(process.pid).value_or(""));
  const auto arguments = procfs::read_cmdline(process.pid).value_or(std::vector<std::string>{});
  for (std::size_t i = 1; i < arguments.size() && arguments[i] != "-c"; ++i) {
    refuse_odd(arguments[i]);
    if (arguments[i] == "-X" || arguments[i] == "-W") {
      ++i;  // its value
    } else if (!arguments[i].starts_with('-')) {
      break;  // the script; behind it are the program's own arguments
    }
  }
  for (const auto* const variable : {"PYTHONPATH", "PYTHONHOME"}) {
    refuse_odd(procfs::read_environ_value(process.pid, variable).value_or(""));
  }
}

}  // namespace

void read_state(Examined& process) {
  const auto evaluator = process.memory->read_pointer(process.target.addresses.eval_frame);
  if (!evaluator) {
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  const auto mailbox = read_mailbox(*process.memory, process.target.addresses.mailbox);
  const auto state =
      classify_evaluator(*evaluator, mailbox, process.target.text_begin, process.target.text_end);
  if (!state) {
    const auto* module = procfs::find_mapping(process.maps, *evaluator);
    throw Refuse{Reason::kForeignEvaluator,
                 fmt::format("another frame evaluator (PEP 523) is installed: {:#x} in {}",
                             evaluator->value(),
                             module == nullptr ? "no mapping" : base::printable(module->path)),
                 "disable whatever installed it (a debugger, torch.compile ...)"};
  }
  if (*state == TrampolineState::kOnByItself) {
    refuse_jit_dump(process);
  }
  process.target.state = *state;
  if (*state == TrampolineState::kOnByUs && mailbox) {
    process.target.owner = {.pid = base::Pid{mailbox->owner_pid},
                            .start_time = mailbox->owner_start};
    process.target.owner_namespace = mailbox->owner_namespace;
  }
  if (*state != TrampolineState::kOff) {
    return;
  }
  if (!mailbox || mailbox->evaluator == 0) {
    check_watchers(process);
  }
  if (!mailbox) {
    return;
  }
  if (mailbox->outcome == kFailed) {
    throw Refuse{Reason::kActivationFailed, "an earlier activation of this process failed",
                 "see its stderr; restart the process to try again"};
  }
  if (!belongs_to(*mailbox, process.target.inner_pid, process.target.id.start_time) &&
      mailbox->evaluator != 0 && activates_once(process.target.version)) {
    throw Refuse{Reason::kForkedAfterActivation,
                 "it was forked by a process that had been activated before",
                 "a second activation crashes Python 3.14 and later (cpython gh-146522): restart "
                 "it, or record its parent while the parent forks it again"};
  }
}

void look_at_surroundings(Examined& process) {
  if (process.target.state != TrampolineState::kOff) {
    return;
  }
  refuse_traced(process);
  if (process.status.seccomp == procfs::SeccompMode::kStrict) {
    throw Refuse{Reason::kSeccomp, "it runs in seccomp's strict mode", "record --engine bpf"};
  }
  const auto jit = procfs::read_environ_value(process.pid, "PYTHON_JIT");
  if (jit && !jit->empty() && *jit != "0" && process.interpreter.file->mentions_jit) {
    throw Refuse{Reason::kJitActive, "its JIT is switched on (PYTHON_JIT)",
                 "CPython has no trampoline with the JIT: restart it with PYTHON_JIT=0"};
  }
  check_names(process);
  check_stacks(process);
  check_exit(process);
  if (auto refusal =
          check_resources(process.pid, process.target.version, process.status, process.maps)) {
    throw Refuse{refusal->reason, refusal->found, refusal->remedy};
  }
  if (auto refusal = check_map_file(process.pid, process.status, process.target.id.start_time,
                                    process.target.map_path)) {
    throw Refuse{refusal->reason, refusal->found, refusal->remedy};
  }
}

}  // namespace pyinject::python
