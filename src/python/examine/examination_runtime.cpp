#include "base/text.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/executable.hpp"
#include "procfs/stat.hpp"
#include "python/examine/examination.hpp"
#include "python/examine/stack_gap.hpp"
#include "python/layout/code_probe.hpp"
#include "python/layout/function_ranges.hpp"
#include "python/layout/layout_facts.hpp"
#include "python/layout/layout_proof.hpp"
#include "python/layout/runtime_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace pyinject::python {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kCodeBytes = 512;  // more than any accessor has

}  // namespace

void Examination::find_runtime() {
  auto& addresses = target_.addresses;
  addresses.runtime = interpreter_.address("_PyRuntime");
  std::vector<std::byte> head(kDebugOffsetsBytes);
  if (!memory_.read(addresses.runtime, head)) {
    throw Refuse{Reason::kLayoutMismatch,
                 fmt::format("_PyRuntime at {:#x} cannot be read", addresses.runtime.value()), ""};
  }
  auto layout = parse_layout(target_.version, head);
  if (const auto* wrong = std::get_if<std::string>(&layout)) {
    throw Refuse{Reason::kLayoutMismatch, *wrong, "please report this build"};
  }
  layout_ = std::get<RuntimeLayout>(layout);
  if (layout_.free_threaded && purpose_ == Purpose::kActivate) {
    throw Refuse{
        Reason::kFreeThreaded, "it is a free-threaded build",
        "record --engine bpf, or use a build with the GIL: without it the trampoline is not "
        "thread-safe (cpython gh-152330)"};
  }
  const RuntimeView view{memory_, layout_, addresses.runtime};
  if (view.finalizing()) {
    throw Refuse{Reason::kFinalizing, "its interpreter is shutting down", ""};
  }
  if (const auto main = view.main_interpreter()) {
    target_.has_gil = view.uses_gil(*main);
  }
  const auto initialized_at = addresses.runtime + layout_.initialized;
  if (purpose_ == Purpose::kObserve) {
    if (!is_tested(target_.version)) {
      prove_layout();
    }
    // Its first frames exist before it is initialized.
    constexpr std::uint64_t kEarlierFlags = 4 * sizeof(std::uint32_t);
    if (!has_started(initialized_at - kEarlierFlags) && !may_be_starting()) {
      initialized_ = initialized_at;
      throw Refuse{Reason::kNotInitialized, "its interpreter is not initialized (yet)",
                   "try again when the program has started"};
    }
    return;
  }
  const auto interpreter = view.main_interpreter();
  const bool initialized = view.initialized();
  if (!initialized) {
    initialized_ = initialized_at;
  }
  if (!initialized || !interpreter) {
    throw Refuse{Reason::kNotInitialized, "its interpreter is not initialized (yet)",
                 "try again when the program has started"};
  }
  addresses.main_interpreter = *interpreter;
  addresses.eval_frame = *interpreter + layout_.eval_frame;
  addresses.run_simple_string = interpreter_.address("PyRun_SimpleString");
  addresses.add_pending_call = interpreter_.address("Py_AddPendingCall");
  addresses.gilstate_ensure = interpreter_.address("PyGILState_Ensure");
  addresses.gilstate_release = interpreter_.address("PyGILState_Release");
  if (view.interpreters().size() > 1) {
    target_.warnings.emplace_back(
        "it has sub-interpreters: CPython's trampoline works only in the main interpreter; "
        "--engine bpf shows the functions of all");
  }
}

// Programs start Python at once.
bool Examination::may_be_starting() const {
  const auto stat = image_ == nullptr ? procfs::read_stat(pid_) : std::nullopt;
  const auto two_seconds = 2 * static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return stat && stat->start_time + two_seconds > procfs::ticks_since_boot();
}

void Examination::prove_layout() {
  const auto version = to_string(target_.version);
  if (!RuntimeView{memory_, layout_, target_.addresses.runtime}.initialized()) {
    throw Refuse{Reason::kNotInitialized, "its interpreter is not initialized (yet)",
                 "try again when the program has started"};
  }
  if (!interpreter_.file->defines("PyCode_Type")) {
    throw Refuse{Reason::kNoLibpythonSymbols,
                 fmt::format("{} does not export PyCode_Type", target_.interpreter),
                 "use an interpreter whose dynamic symbol table is intact"};
  }
  if (const auto wrong = disprove(memory_, layout_, target_.addresses.runtime,
                                  interpreter_.address("PyCode_Type"))) {
    throw Refuse{wrong->too_early ? Reason::kNotInitialized : Reason::kLayoutMismatch,
                 fmt::format("Python {} is an untested version: {}", version, wrong->found),
                 wrong->too_early ? "try again when the program has started"
                                  : "use a release of perf-pyinject that knows this version"};
  }
  target_.untested = true;
  target_.warnings.push_back(fmt::format(
      "untested version: Python {} is read by its own offsets, which fit what is in its memory",
      version));
}

std::vector<std::byte> Examination::code_of(std::string_view symbol) const {
  const auto size = interpreter_.file->symbols.find(symbol)->second.size;
  std::vector<std::byte> code(std::min<std::size_t>(size == 0 ? kCodeBytes : size, kCodeBytes));
  if (!memory_.read(interpreter_.address(symbol), code)) {
    code.clear();
  }
  return code;
}

std::optional<std::uint64_t> Examination::probe_code(std::string_view symbol,
                                                     const CodeProbe& probe) const {
  if (const auto found = probe(code_of(symbol), interpreter_.address(symbol))) {
    return found;
  }
  for (const auto& part : parts_reached(target_, symbol)) {
    std::vector<std::byte> code(part.end.value() - part.begin.value());
    const auto found = memory_.read(part.begin, code) ? probe(code, part.begin) : std::nullopt;
    if (found) {
      return found;
    }
  }
  return std::nullopt;
}

// The table is of release builds; those with Py_DEBUG have more fields.
std::string Examination::remedy_for_layout() const {
  return interpreter_.file->defines("_Py_RefTotal")
             ? "record --engine bpf: it is a debug build (--with-pydebug)"
             : "record --engine bpf, and please report this build";
}

void Examination::check_code() {
  constexpr std::string_view kAccessor = "_PyInterpreterState_GetEvalFrameFunc";
  const auto field = probe_code(kAccessor, first_field_loaded);
  if (field != layout_.eval_frame) {
    throw Refuse{Reason::kLayoutMismatch,
                 fmt::format("eval_frame is at {} in the table for {}.{}, but at {} in {}",
                             layout_.eval_frame, target_.version.major, target_.version.minor,
                             field ? std::to_string(*field) : "an unknown offset", kAccessor),
                 remedy_for_layout()};
  }
  constexpr std::string_view kAdd = "_PyEval_AddPendingCall";
  const auto slot = [this](base::RemoteAddress at) {
    return memory_.read_value<std::uint64_t>(at);
  };
  const auto queue_there =
      probe_code(kAdd, [&](std::span<const std::byte> code, base::RemoteAddress at) {
        return takes_address(code, at, target_.addresses.runtime, layout_.pending_calls, slot)
                   ? std::optional<std::uint64_t>{1}
                   : std::nullopt;
      });
  if (!queue_there) {
    throw Refuse{
        Reason::kLayoutMismatch,
        fmt::format("the pending calls are not at _PyRuntime + {}, where {} should use them",
                    layout_.pending_calls, kAdd),
        remedy_for_layout()};
  }
}

// The C library that the interpreter uses. It is in the interpreter's file if that is statically
// linked, even if the process also has glibc mapped.
void Examination::find_libc() {
  const auto use = [this](const Module& module) {
    libc_ = module;
    target_.addresses.sem_post = module.address("sem_post");
    target_.addresses.sigreturn = module.bias.apply(*module.file->restorer);
  };
  if (interpreter_.file->is_c_library()) {
    use(interpreter_);  // check_symbols() has checked it
    return;
  }
  for (const auto& mapping : maps_) {
    const auto module =
        mapping.executable && mapping.inode != 0 ? module_of(mapping) : std::nullopt;
    if (!module || !module->file->defines("sem_post")) {
      continue;
    }
    if (module->file->serves_requests()) {
      use(*module);
      return;
    }
    if (module->file->is_c_library() && !module->file->is_of_glibc()) {
      throw Refuse{Reason::kNoMailboxSpace,
                   "its C library is not glibc: " + base::printable(mapping.path),
                   "record --engine bpf, or use a build with glibc"};
    }
  }
  if (given_up()) {
    throw not_examined();
  }
  throw Refuse{Reason::kNoMailboxSpace, "no C library with sem_post is mapped into it",
               "record --engine bpf, or use a build with glibc"};
}

bool Examination::is_executable_of_process(const procfs::Mapping& mapping) const {
  const auto executable = procfs::executable_of(pid_);
  return executable && executable->second == mapping.inode;
}

// The memory between the end of MODULE's .bss and the end of that page.
std::optional<UnusedMemory> Examination::page_tail(const Module& module) const {
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
  const auto* mapping = procfs::find_mapping(maps_, begin);
  const std::uint64_t size = (kPage - begin.value() % kPage) % kPage;
  if (mapping == nullptr || !mapping->writable || mapping->shared || mapping->path == "[heap]" ||
      (begin + size) > mapping->end) {
    return std::nullopt;
  }
  return UnusedMemory{.begin = begin, .size = size};
}

// The gap between the platform's name and the arguments.
std::optional<UnusedMemory> Examination::top_of_stack() const {
  const auto stat = procfs::read_stat(pid_);
  const auto auxv = procfs::read_auxv(pid_);
  const auto stack = stat && auxv
                         ? parse_first_stack(*auxv, stat->stack_begin, stat->arguments_begin)
                         : std::nullopt;
  return stack ? stack_gap(memory_, maps_, *stack) : std::nullopt;
}

// Never behind the executable's data: the heap starts there.
std::vector<UnusedMemory> Examination::unused_memory() const {
  std::vector<UnusedMemory> places;
  const auto add = [&places](std::optional<UnusedMemory> place) {
    if (place) {
      places.push_back(*place);
    }
  };
  for (const auto* const module : {&interpreter_, &libc_}) {
    if (!(module == &interpreter_ && module->file->has_program_interpreter) &&
        !is_executable_of_process(module->mapping)) {
      add(page_tail(*module));
    }
  }
  add(top_of_stack());
  return places;
}

void Examination::find_mailbox() {
  std::optional<base::RemoteAddress> unused;
  std::uint64_t most = 0;
  for (const auto& memory : unused_memory()) {
    most = std::max(most, memory.size);
    const auto place = mailbox_place(memory);
    if (!place) {
      continue;
    }
    if (read_mailbox(memory_, *place)) {
      target_.addresses.mailbox = *place;
      return;
    }
    if (!unused && is_unused(memory_, *place)) {
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
  target_.addresses.mailbox = *unused;
}

}  // namespace pyinject::python
