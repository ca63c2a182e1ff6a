#include "base/text.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/executable.hpp"
#include "procfs/stat.hpp"
#include "python/examine/examination.hpp"
#include "python/examine/stack_gap.hpp"
#include "python/layout/code_probe.hpp"
#include "python/layout/layout_facts.hpp"
#include "python/layout/layout_proof.hpp"
#include "python/layout/runtime_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace pyinject::python {

namespace {

constexpr std::uint64_t kPage = 4096;

// Programs start Python at once.
bool may_be_starting(const Examined& process) {
  const auto stat = process.image == nullptr ? procfs::read_stat(process.pid) : std::nullopt;
  const auto two_seconds = 2 * static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return stat && stat->start_time + two_seconds > procfs::ticks_since_boot();
}

void prove_layout(Examined& process) {
  const auto version = to_string(process.target.version);
  if (!RuntimeView{*process.memory, process.layout, process.target.addresses.runtime}
           .initialized()) {
    throw Refuse{Reason::kNotInitialized, "its interpreter is not initialized (yet)",
                 "try again when the program has started"};
  }
  if (!process.interpreter.file->defines("PyCode_Type")) {
    throw Refuse{Reason::kNoLibpythonSymbols,
                 fmt::format("{} does not export PyCode_Type", process.target.interpreter),
                 "use an interpreter whose dynamic symbol table is intact"};
  }
  if (const auto wrong = disprove(*process.memory, process.layout, process.target.addresses.runtime,
                                  process.interpreter.address("PyCode_Type"))) {
    throw Refuse{wrong->too_early ? Reason::kNotInitialized : Reason::kLayoutMismatch,
                 fmt::format("Python {} is an untested version: {}", version, wrong->found),
                 wrong->too_early ? "try again when the program has started"
                                  : "use a release of perf-pyinject that knows this version"};
  }
  process.target.untested = true;
  process.target.warnings.push_back(fmt::format(
      "untested version: Python {} is read by its own offsets, which fit what is in its memory",
      version));
}

// The C library that the interpreter uses. It is in the interpreter's file if that is statically
// linked, even if the process also has glibc mapped.
Module find_libc(Examined& process) {
  if (process.interpreter.file->is_c_library()) {
    return process.interpreter;  // check_symbols() has checked it
  }
  for (const auto& mapping : process.maps) {
    const auto module =
        mapping.executable && mapping.inode != 0 ? process.module_of(mapping) : std::nullopt;
    if (!module || !module->file->defines("sem_post")) {
      continue;
    }
    if (module->file->serves_requests()) {
      return *module;
    }
    if (module->file->is_c_library() && !module->file->is_of_glibc()) {
      throw Refuse{Reason::kNoMailboxSpace,
                   "its C library is not glibc: " + base::printable(mapping.path),
                   "record --engine bpf, or use a build with glibc"};
    }
  }
  if (process.given_up()) {
    throw process.not_examined();
  }
  throw Refuse{Reason::kNoMailboxSpace, "no C library with sem_post is mapped into it",
               "record --engine bpf, or use a build with glibc"};
}

bool is_executable_of_process(const Examined& process, const procfs::Mapping& mapping) {
  const auto executable = procfs::executable_of(process.pid);
  return executable && executable->second == mapping.inode;
}

// The memory between the end of MODULE's .bss and the end of that page.
std::optional<UnusedMemory> page_tail(const Examined& process, const Module& module) {
  const elf::Segment* last = nullptr;
  for (const auto& segment : module.file->segments) {
    if (segment.is_load() && segment.writable()) {
      last = &segment;
    }
  }
  if (last == nullptr) {
    return std::nullopt;
  }
  const auto begin = module.bias.apply(base::ElfAddress{last->address.value() + last->memory_size});
  const auto* mapping = procfs::find_mapping(process.maps, begin);
  const std::uint64_t size = (kPage - begin.value() % kPage) % kPage;
  if (mapping == nullptr || !mapping->writable || mapping->shared || mapping->path == "[heap]" ||
      (begin + size) > mapping->end) {
    return std::nullopt;
  }
  return UnusedMemory{.begin = begin, .size = size};
}

// The gap between the platform's name and the arguments.
std::optional<UnusedMemory> top_of_stack(const Examined& process) {
  const auto stat = procfs::read_stat(process.pid);
  const auto auxv = procfs::read_auxv(process.pid);
  const auto stack = stat && auxv
                         ? parse_first_stack(*auxv, stat->stack_begin, stat->arguments_begin)
                         : std::nullopt;
  return stack ? stack_gap(*process.memory, process.maps, *stack) : std::nullopt;
}

// Never behind the executable's data: the heap starts there.
std::vector<UnusedMemory> unused_memory(const Examined& process, const Module& libc) {
  std::vector<UnusedMemory> places;
  const auto add = [&places](std::optional<UnusedMemory> place) {
    if (place) {
      places.push_back(*place);
    }
  };
  for (const auto* const module : {&process.interpreter, &libc}) {
    if (!(module == &process.interpreter && module->file->has_program_interpreter) &&
        !is_executable_of_process(process, module->mapping)) {
      add(page_tail(process, *module));
    }
  }
  add(top_of_stack(process));
  return places;
}

}  // namespace

void find_runtime(Examined& process) {
  auto& addresses = process.target.addresses;
  addresses.runtime = process.interpreter.address("_PyRuntime");
  std::vector<std::byte> head(kDebugOffsetsBytes);
  if (!process.memory->read(addresses.runtime, head)) {
    throw Refuse{Reason::kLayoutMismatch,
                 fmt::format("_PyRuntime at {:#x} cannot be read", addresses.runtime.value()), ""};
  }
  auto layout = parse_layout(process.target.version, head);
  if (const auto* wrong = std::get_if<std::string>(&layout)) {
    throw Refuse{Reason::kLayoutMismatch, *wrong, "please report this build"};
  }
  process.layout = std::get<RuntimeLayout>(layout);
  if (process.layout.free_threaded && process.purpose == Purpose::kActivate) {
    throw Refuse{
        Reason::kFreeThreaded, "it is a free-threaded build",
        "record --engine bpf, or use a build with the GIL: without it the trampoline is not "
        "thread-safe (cpython gh-152330)"};
  }
  const RuntimeView view{*process.memory, process.layout, addresses.runtime};
  if (view.finalizing()) {
    throw Refuse{Reason::kFinalizing, "its interpreter is shutting down", ""};
  }
  if (const auto main = view.main_interpreter()) {
    process.target.has_gil = view.uses_gil(*main);
  }
  const auto initialized_at = addresses.runtime + process.layout.initialized;
  if (process.purpose == Purpose::kObserve) {
    if (!is_tested(process.target.version)) {
      prove_layout(process);
    }
    // Its first frames exist before it is initialized.
    constexpr std::uint64_t kEarlierFlags = 4 * sizeof(std::uint32_t);
    if (!process.has_started(initialized_at - kEarlierFlags) && !may_be_starting(process)) {
      throw Refuse{Reason::kNotInitialized, "its interpreter is not initialized (yet)",
                   "try again when the program has started", initialized_at};
    }
    return;
  }
  const auto interpreter = view.main_interpreter();
  const bool initialized = view.initialized();
  if (!initialized || !interpreter) {
    throw Refuse{Reason::kNotInitialized, "its interpreter is not initialized (yet)",
                 "try again when the program has started",
                 initialized ? std::nullopt : std::optional{initialized_at}};
  }
  addresses.main_interpreter = *interpreter;
  addresses.eval_frame = *interpreter + process.layout.eval_frame;
  addresses.run_simple_string = process.interpreter.address("PyRun_SimpleString");
  addresses.add_pending_call = process.interpreter.address("Py_AddPendingCall");
  addresses.gilstate_ensure = process.interpreter.address("PyGILState_Ensure");
  addresses.gilstate_release = process.interpreter.address("PyGILState_Release");
  if (view.interpreters().size() > 1) {
    process.target.warnings.emplace_back(
        "it has sub-interpreters: CPython's trampoline works only in the main interpreter; "
        "--engine bpf shows the functions of all");
  }
}

void check_code(const Examined& process) {
  constexpr std::string_view kAccessor = "_PyInterpreterState_GetEvalFrameFunc";
  const auto field = process.probe_code(kAccessor, first_field_loaded);
  if (field != process.layout.eval_frame) {
    throw Refuse{Reason::kLayoutMismatch,
                 fmt::format("eval_frame is at {} in the table for {}.{}, but at {} in {}",
                             process.layout.eval_frame, process.target.version.major,
                             process.target.version.minor,
                             field ? std::to_string(*field) : "an unknown offset", kAccessor),
                 process.remedy_for_layout()};
  }
  constexpr std::string_view kAdd = "_PyEval_AddPendingCall";
  const auto slot = [&](base::RemoteAddress at) {
    return process.memory->read_value<std::uint64_t>(at);
  };
  const auto queue_there =
      process.probe_code(kAdd, [&](std::span<const std::byte> code, base::RemoteAddress at) {
        return takes_address(code, at, process.target.addresses.runtime,
                             process.layout.pending_calls, slot)
                   ? std::optional<std::uint64_t>{1}
                   : std::nullopt;
      });
  if (!queue_there) {
    throw Refuse{
        Reason::kLayoutMismatch,
        fmt::format("the pending calls are not at _PyRuntime + {}, where {} should use them",
                    process.layout.pending_calls, kAdd),
        process.remedy_for_layout()};
  }
}

void find_mailbox(Examined& process) {
  const auto libc = find_libc(process);
  process.target.addresses.sem_post = libc.address("sem_post");
  process.target.addresses.sigreturn = libc.bias.apply(*libc.file->restorer);
  std::optional<base::RemoteAddress> unused;
  std::uint64_t most = 0;
  for (const auto& memory : unused_memory(process, libc)) {
    most = std::max(most, memory.size);
    const auto place = mailbox_place(memory);
    if (!place) {
      continue;
    }
    if (read_mailbox(*process.memory, *place)) {
      process.target.addresses.mailbox = *place;
      return;
    }
    if (!unused && is_unused(*process.memory, *place)) {
      unused = place;
    }
  }
  if (!unused) {
    throw Refuse{Reason::kNoMailboxSpace,
                 fmt::format("neither behind its libraries' data nor at the top of its stack are "
                             "{} bytes unused (the most are {})",
                             sizeof(Mailbox), most),
                 "record --engine bpf, or restart it: the kernel leaves a random number of bytes "
                 "on the stack, unless address space is not randomized (setarch -R)"};
  }
  process.target.addresses.mailbox = *unused;
}

}  // namespace pyinject::python
