#include "pyinject/python/detector.hpp"

#include "code_probe.hpp"
#include "mailbox.hpp"
#include "map_file_check.hpp"
#include "mapped_file.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/elf/load_bias.hpp"
#include "pyinject/procfs/cmdline.hpp"
#include "pyinject/procfs/maps.hpp"
#include "pyinject/procfs/namespaces.hpp"
#include "pyinject/procfs/open_mapped.hpp"
#include "pyinject/procfs/stat.hpp"
#include "pyinject/procfs/status.hpp"
#include "pyinject/tracee/remote_memory.hpp"
#include "runtime_layout.hpp"
#include "runtime_view.hpp"
#include "version_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::python {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kCodeBytes = 512;  // of an accessor, more than enough

// A refusal on its way out of the steps below; never leaves this file.
struct Refuse {
  Reason reason{};
  std::string found;
  std::string remedy;
};

std::string permission_remedy(const procfs::Status& status) {
  const auto yama = base::read_file("/proc/sys/kernel/yama/ptrace_scope", 16);
  if (status.uids[0] != ::geteuid()) {
    return fmt::format(
        "it belongs to uid {}: run as root, or grant CAP_SYS_PTRACE (setcap cap_sys_ptrace+ep)",
        status.uids[0]);
  }
  if (yama && base::trim(*yama) != "0") {
    return fmt::format(
        "kernel.yama.ptrace_scope is {}: run as root, grant CAP_SYS_PTRACE, or set it to 0",
        base::trim(*yama));
  }
  return "it has more rights than this tool or is not dumpable: run as root or grant "
         "CAP_SYS_PTRACE";
}

// One mapped file of the process, with its place.
struct Module {
  const MappedFile* file = nullptr;
  procfs::Mapping mapping;  // an executable one
  base::LoadBias bias;

  [[nodiscard]] base::RemoteAddress address(std::string_view symbol) const {
    return bias.apply(file->symbols.find(symbol)->second.address);
  }
};

class Examination {
 public:
  Examination(MappedFiles& files, base::Pid pid) : files_{files}, pid_{pid}, memory_{pid} {}

  Detection run() {
    try {
      look_at_process();
      find_interpreter();
      read_version();
      check_symbols();
      find_runtime();
      check_code();
      find_libc();
      find_mailbox();
      read_state();
      look_at_surroundings();
      return std::move(target_);
    } catch (Refuse& refuse) {
      return Refused{.refusal = {.reason = refuse.reason,
                                 .found = std::move(refuse.found),
                                 .remedy = std::move(refuse.remedy)},
                     .version = target_.version,
                     .interpreter = target_.interpreter,
                     .frame_pointers = frame_pointers_};
    }
  }

 private:
  void look_at_process();
  void find_interpreter();
  void read_version();
  void check_symbols();
  void find_runtime();
  void check_code();
  void find_libc();
  void find_mailbox();
  void read_state();
  void look_at_surroundings();
  void check_stacks() const;
  void check_watchers() const;

  [[nodiscard]] std::optional<Module> module_of(const procfs::Mapping& mapping);
  [[nodiscard]] std::optional<PageTail> page_tail(const Module& module) const;
  [[nodiscard]] bool is_executable_of_process(const procfs::Mapping& mapping) const;
  [[nodiscard]] std::vector<std::byte> code_of(std::string_view symbol) const;

  MappedFiles& files_;
  base::Pid pid_;
  tracee::ProcessMemory memory_;
  Target target_;
  procfs::Status status_;
  std::vector<procfs::Mapping> maps_;
  Module interpreter_;
  Module libc_;
  RuntimeLayout layout_;
  std::optional<bool> frame_pointers_;
};

void Examination::look_at_process() {
  if (pid_.value() == ::getpid()) {
    throw Refuse{Reason::kOwnProcess, "it is perf-pyinject itself", "name another pid"};
  }
  const auto stat = procfs::read_stat(pid_);
  auto status = procfs::read_status(pid_);
  if (!stat || !status) {
    throw Refuse{Reason::kNoSuchProcess, "there is no such process", "look it up again with pgrep"};
  }
  if (status->process != pid_) {
    throw Refuse{Reason::kNoSuchProcess,
                 fmt::format("it is a thread of process {}", status->process.value()),
                 fmt::format("use -p {}", status->process.value())};
  }
  status_ = std::move(*status);
  target_.id = {.pid = pid_, .start_time = stat->start_time};
  if (stat->kernel_thread()) {
    throw Refuse{Reason::kKernelThread, "it is a kernel thread", ""};
  }
  if (status_.state == 'Z' && status_.threads <= 1) {
    throw Refuse{Reason::kZombie, "it is a zombie: it has ended and waits for its parent", ""};
  }
  if (status_.state == 'Z') {
    throw Refuse{Reason::kMainThreadGone,
                 fmt::format("its main thread has ended, {} others go on", status_.threads - 1),
                 "CPython runs pending calls in its main thread only"};
  }
  target_.inner_pid = procfs::inner_pid(status_);
  target_.map_path = fmt::format("/tmp/perf-{}.map", target_.inner_pid.value());
  target_.foreign_namespace =
      target_.inner_pid != pid_ || !procfs::root_is_ours(pid_).value_or(false) ||
      !procfs::in_our_namespace(pid_, procfs::Namespace::kMount).value_or(false);

  auto maps = procfs::read_maps(pid_);
  if (!maps) {
    const int error = errno;
    if (error == EACCES || error == EPERM) {
      throw Refuse{
          Reason::kNoPermission,
          fmt::format("cannot read /proc/{}/maps: {}", pid_.value(), base::errno_text(error)),
          permission_remedy(status_)};
    }
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  maps_ = std::move(*maps);
  if (maps_.empty()) {
    throw Refuse{Reason::kExited, "it has no memory any more: it is ending", ""};
  }
}

std::optional<Module> Examination::module_of(const procfs::Mapping& mapping) {
  const MappedFile* file = files_.get(pid_, mapping);
  if (file == nullptr) {
    return std::nullopt;
  }
  const auto bias = elf::load_bias(file->segments, mapping.begin, mapping.offset, true);
  if (!bias) {
    return std::nullopt;
  }
  return Module{.file = file, .mapping = mapping, .bias = *bias};
}

void Examination::find_interpreter() {
  // By what is in the files, not by their names: Python is embedded under any name. Files that are
  // called python come first only to be quick.
  std::vector<const procfs::Mapping*> candidates;
  for (const auto& mapping : maps_) {
    if (mapping.executable && mapping.inode != 0) {
      candidates.push_back(&mapping);
    }
  }
  const auto named_python = [](const procfs::Mapping* mapping) {
    return mapping->path.find("python") != std::string::npos;
  };
  std::stable_partition(candidates.begin(), candidates.end(), named_python);
  const procfs::Mapping* nameless = nullptr;  // called python, but nothing can be found in it
  for (const auto* mapping : candidates) {
    const auto module = module_of(*mapping);
    if (module && module->file->is_interpreter()) {
      interpreter_ = *module;
      break;
    }
    const auto name = mapping->path.substr(mapping->path.rfind('/') + 1);
    if (name.starts_with("python3") || name.starts_with("libpython3")) {
      nameless = mapping;
    }
  }
  if (interpreter_.file == nullptr) {
    if (nameless != nullptr) {
      const auto path = base::printable(nameless->path);
      const auto opened = procfs::open_mapped_file(pid_, *nameless);
      if (const auto* failure = std::get_if<procfs::NotOpened>(&opened)) {
        throw Refuse{Reason::kNoPermission, fmt::format("cannot open {}: {}", path, failure->why),
                     "run as root, or as a user that may read that file"};
      }
      throw Refuse{Reason::kNoLibpythonSymbols, fmt::format("{} exports no CPython symbols", path),
                   "use an interpreter whose dynamic symbol table is intact"};
    }
    throw Refuse{Reason::kNotPython, "no CPython is mapped into it", ""};
  }
  target_.interpreter = base::printable(interpreter_.mapping.path);
  target_.bias = interpreter_.bias;
  target_.text_begin = interpreter_.mapping.begin;
  for (const auto& mapping : maps_) {
    if (mapping.executable && mapping.inode == interpreter_.mapping.inode &&
        mapping.device_major == interpreter_.mapping.device_major &&
        mapping.device_minor == interpreter_.mapping.device_minor) {
      target_.text_end = std::max(target_.text_end, mapping.end);
    }
  }
  if (interpreter_.file->frame_pointer_share) {
    frame_pointers_ = *interpreter_.file->frame_pointer_share >= 0.5;
    target_.frame_pointers = *frame_pointers_;
  }
}

void Examination::read_version() {
  if (!interpreter_.file->defines("Py_Version")) {
    throw Refuse{Reason::kPythonTooOld, "it is older than Python 3.11: it has no Py_Version",
                 "the perf trampoline came with Python 3.12"};
  }
  const auto hex = memory_.read_value<std::uint64_t>(interpreter_.address("Py_Version"));
  if (!hex) {
    const int error = errno;
    if (error == EPERM || error == EACCES) {
      throw Refuse{Reason::kNoPermission,
                   fmt::format("process_vm_readv: {}", base::errno_text(error)),
                   permission_remedy(status_)};
    }
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  target_.version = version_from_hex(*hex);
  if (auto refusal = refuse_version(target_.version)) {
    throw Refuse{refusal->reason, refusal->found, refusal->remedy};
  }
}

void Examination::check_symbols() {
  const auto& file = *interpreter_.file;
  if (!file.defines("_Py_trampoline_func_start") || !file.defines("_Py_trampoline_func_end")) {
    throw Refuse{Reason::kNoPerfTrampoline,
                 fmt::format("{} was built without the perf trampoline", target_.interpreter),
                 "use a build with sysconfig's PY_HAVE_PERF_TRAMPOLINE set"};
  }
  for (const auto* symbol :
       {"_PyRuntime", "PyRun_SimpleString", "Py_AddPendingCall", "_PyEval_AddPendingCall",
        "PyGILState_Ensure", "PyGILState_Release", "_PyInterpreterState_GetEvalFrameFunc"}) {
    if (!file.defines(symbol)) {
      throw Refuse{Reason::kNoLibpythonSymbols,
                   fmt::format("{} does not export {}", target_.interpreter, symbol),
                   "use an interpreter whose dynamic symbol table is intact"};
    }
  }
  // BOLT moves the end marker: CPython then copies megabytes as one trampoline and crashes
  // (cpython gh-128883).
  const auto begin = interpreter_.address("_Py_trampoline_func_start").value();
  const auto end = interpreter_.address("_Py_trampoline_func_end").value();
  if (end <= begin || end - begin > 64) {
    throw Refuse{Reason::kBrokenTrampoline,
                 fmt::format("its trampoline would be {} bytes long: a build spoiled by BOLT",
                             static_cast<std::int64_t>(end - begin)),
                 "use a build without BOLT, or a python-build-standalone from 20261021 on"};
  }
}

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
  if (layout_.free_threaded) {
    throw Refuse{Reason::kFreeThreaded, "it is a free-threaded build",
                 "CPython's trampoline is not thread-safe there (cpython gh-152330)"};
  }
  const RuntimeView view{memory_, layout_, addresses.runtime};
  if (view.finalizing()) {
    throw Refuse{Reason::kFinalizing, "its interpreter is shutting down", ""};
  }
  const auto interpreter = view.main_interpreter();
  if (!view.initialized() || !interpreter) {
    throw Refuse{Reason::kNotInitialized, "its interpreter is not initialized (yet)",
                 "try again when the program has started"};
  }
  addresses.main_interpreter = *interpreter;
  addresses.eval_frame = *interpreter + layout_.eval_frame;
  addresses.run_simple_string = interpreter_.address("PyRun_SimpleString");
  addresses.add_pending_call = interpreter_.address("Py_AddPendingCall");
  addresses.gilstate_ensure = interpreter_.address("PyGILState_Ensure");
  addresses.gilstate_release = interpreter_.address("PyGILState_Release");
  if (view.interpreter_count() > 1) {
    target_.warnings.emplace_back(
        "it has sub-interpreters: only the main interpreter's functions get names");
  }
}

std::vector<std::byte> Examination::code_of(std::string_view symbol) const {
  const auto size = interpreter_.file->symbols.find(symbol)->second.size;
  std::vector<std::byte> code(std::min<std::size_t>(size == 0 ? kCodeBytes : size, kCodeBytes));
  if (!memory_.read(interpreter_.address(symbol), code)) {
    code.clear();
  }
  return code;
}

void Examination::check_code() {
  constexpr std::string_view kAccessor = "_PyInterpreterState_GetEvalFrameFunc";
  const auto field = first_field_loaded(code_of(kAccessor), interpreter_.address(kAccessor));
  if (field != layout_.eval_frame) {
    throw Refuse{Reason::kLayoutMismatch,
                 fmt::format("eval_frame is at {} by the table for {}.{}, at {} by {}",
                             layout_.eval_frame, target_.version.major, target_.version.minor,
                             field ? std::to_string(*field) : "an unknown offset", kAccessor),
                 "please report this build"};
  }
  constexpr std::string_view kAdd = "_PyEval_AddPendingCall";
  const bool queue_there = takes_address(
      code_of(kAdd), interpreter_.address(kAdd), target_.addresses.runtime, layout_.pending_calls,
      [this](base::RemoteAddress slot) { return memory_.read_value<std::uint64_t>(slot); });
  if (!queue_there) {
    throw Refuse{
        Reason::kLayoutMismatch,
        fmt::format("the pending calls are not at _PyRuntime + {}, where {} should use them",
                    layout_.pending_calls, kAdd),
        "please report this build"};
  }
}

void Examination::find_libc() {
  for (const auto& mapping : maps_) {
    if (!mapping.executable || mapping.inode == 0) {
      continue;
    }
    const auto module = module_of(mapping);
    if (module && module->file->restorer && !module->file->is_interpreter()) {
      libc_ = *module;
      target_.addresses.sem_post = module->address("sem_post");
      target_.addresses.sigreturn = module->bias.apply(*module->file->restorer);
      return;
    }
  }
  throw Refuse{Reason::kNoMailboxSpace, "no C library with sem_post is mapped into it",
               "only dynamically linked glibc builds are supported"};
}

bool Examination::is_executable_of_process(const procfs::Mapping& mapping) const {
  struct stat executable {};
  return ::stat(fmt::format("/proc/{}/exe", pid_.value()).c_str(), &executable) == 0 &&
         executable.st_ino == mapping.inode;
}

// What lies between the end of MODULE's .bss and the end of that page.
std::optional<PageTail> Examination::page_tail(const Module& module) const {
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
  return PageTail{.begin = begin, .size = size};
}

void Examination::find_mailbox() {
  const auto libc_name = libc_.mapping.path.substr(libc_.mapping.path.rfind('/') + 1);
  if (libc_name.starts_with("ld-")) {
    // musl's loader gives the ends of all data pages to malloc (reclaim_gaps).
    throw Refuse{Reason::kNoMailboxSpace, "its C library is " + base::printable(libc_name),
                 "only glibc builds are supported"};
  }
  // Never the executable's own: the heap begins behind it.
  std::vector<const Module*> modules;
  if (!interpreter_.file->has_program_interpreter &&
      !is_executable_of_process(interpreter_.mapping)) {
    modules.push_back(&interpreter_);
  }
  modules.push_back(&libc_);
  std::optional<base::RemoteAddress> unused;
  for (const auto* module : modules) {
    const auto tail = page_tail(*module);
    const auto place = tail ? mailbox_place(*tail) : std::nullopt;
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
                 fmt::format("no library has {} unused bytes behind its data", sizeof(Mailbox)),
                 "please report this build"};
  }
  target_.addresses.mailbox = *unused;
}

void Examination::read_state() {
  const auto evaluator = memory_.read_pointer(target_.addresses.eval_frame);
  if (!evaluator) {
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  const auto mailbox = read_mailbox(memory_, target_.addresses.mailbox);
  const auto state = classify_evaluator(*evaluator, mailbox, target_.text_begin, target_.text_end);
  if (!state) {
    const auto* module = procfs::find_mapping(maps_, *evaluator);
    throw Refuse{Reason::kForeignEvaluator,
                 fmt::format("another frame evaluator (PEP 523) is installed: {:#x} in {}",
                             evaluator->value(),
                             module == nullptr ? "no mapping" : base::printable(module->path)),
                 "switch off what installed it (a debugger, torch.compile ...)"};
  }
  target_.state = *state;
  if (*state == TrampolineState::kOnByUs && mailbox) {
    target_.owner = {.pid = base::Pid{mailbox->owner_pid}, .start_time = mailbox->owner_start};
  }
  if (*state != TrampolineState::kOff) {
    return;
  }
  if (!mailbox || mailbox->evaluator == 0) {
    check_watchers();
  }
  if (!mailbox) {
    return;
  }
  if (mailbox->failed != 0) {
    throw Refuse{Reason::kActivationFailed, "an earlier activation of this process failed",
                 "look at its stderr; restart it to try again"};
  }
  if (!belongs_to(*mailbox, target_.inner_pid, target_.id.start_time) && mailbox->evaluator != 0 &&
      target_.version.minor >= 14) {
    throw Refuse{
        Reason::kForkedAfterActivation, "it was forked by a process that had been activated before",
        "a second activation crashes Python 3.14 and later (cpython gh-146522); record its "
        "parent and let it fork again meanwhile, or restart it"};
  }
}

// From 3.13.12, 3.14 and 3.15 on each activation registers one more watcher of code objects, which
// stays; with two of them trampolines are freed while they are in use. So one that is the
// interpreter's own says that the program had the trampoline on before and switched it off.
void Examination::check_watchers() const {
  const auto& version = target_.version;
  if (version.minor < 13 || (version.minor == 13 && version.micro < 12)) {
    return;
  }
  constexpr std::string_view kAccessor = "PyCode_ClearWatcher";
  constexpr std::size_t kWatchers = 8;  // CODE_MAX_WATCHERS
  const auto array =
      interpreter_.file->defines(kAccessor)
          ? first_element_compared(code_of(kAccessor), interpreter_.address(kAccessor))
          : std::nullopt;
  if (!array || *array % sizeof(std::uint64_t) != 0 || *array > layout_.interpreter_size) {
    throw Refuse{Reason::kLayoutMismatch,
                 fmt::format("the watchers of code objects are at {} by {}",
                             array ? std::to_string(*array) : "an unknown offset", kAccessor),
                 "please report this build"};
  }
  for (std::size_t i = 0; i < kWatchers; ++i) {
    const auto watcher = memory_.read_pointer(target_.addresses.main_interpreter +
                                              (*array + i * sizeof(std::uint64_t)));
    if (watcher && *watcher >= target_.text_begin && *watcher < target_.text_end) {
      throw Refuse{
          Reason::kActivatedBefore,
          "it had the trampoline on by itself before (-X perf or its own call)",
          "a second activation crashes this Python (cpython gh-146522): restart it, or let "
          "it not call sys.deactivate_stack_trampoline()"};
    }
  }
}

void Examination::check_stacks() const {
  if (target_.version.minor >= 14) {
    return;  // they check the C stack itself and raise RecursionError
  }
  constexpr std::uint64_t kDescriptor = std::uint64_t{64} << 10U;  // with thread-local variables
  constexpr std::uint64_t kLeast = (std::uint64_t{1} << 20U) - kDescriptor;
  const RuntimeView view{memory_, layout_, target_.addresses.runtime};
  const auto main_thread = view.main_thread();
  for (const auto& thread : view.threads(target_.addresses.main_interpreter)) {
    if (thread.thread_id == main_thread) {
      continue;  // grows up to its resource limit
    }
    // glibc keeps the thread's descriptor at the top of its stack. The mapping may go on above it
    // (the kernel merges neighbours), but not below: there is the guard.
    const auto* stack = procfs::find_mapping(maps_, base::RemoteAddress{thread.thread_id});
    if (stack == nullptr) {
      continue;
    }
    const std::uint64_t size = thread.thread_id - stack->begin.value();
    if (size < kLeast) {
      throw Refuse{Reason::kSmallStack,
                   fmt::format("a Python thread has a stack of only {} KiB", size >> 10U),
                   fmt::format("with the trampoline each Python call takes C stack, and Python "
                               "{}.{} does not check its end: give threads at least 1 MiB "
                               "(threading.stack_size)",
                               target_.version.major, target_.version.minor)};
    }
  }
}

void Examination::look_at_surroundings() {
  if (target_.state != TrampolineState::kOff) {
    return;
  }
  if (status_.tracer.value() != 0) {
    const auto tracer = procfs::read_status(status_.tracer);
    throw Refuse{Reason::kTraced,
                 fmt::format("pid {}{} traces it", status_.tracer.value(),
                             tracer ? " (" + base::printable(tracer->name) + ")" : ""),
                 "end that debugger or tracer first"};
  }
  if (status_.seccomp == procfs::SeccompMode::kStrict) {
    throw Refuse{Reason::kSeccomp, "it runs in seccomp's strict mode",
                 "any system call of the activation would kill it"};
  }
  const auto jit = procfs::read_environ_value(pid_, "PYTHON_JIT");
  if (jit && !jit->empty() && *jit != "0" && interpreter_.file->mentions_jit) {
    throw Refuse{Reason::kJitActive, "its JIT is switched on (PYTHON_JIT)",
                 "CPython has no trampoline with the JIT: restart it with PYTHON_JIT=0"};
  }
  check_stacks();
  if (auto refusal = check_map_file(pid_, status_, target_.map_path)) {
    throw Refuse{refusal->reason, refusal->found, refusal->remedy};
  }
}

class ProcessDetector : public Detector {
 public:
  Detection detect(base::Pid pid) override { return Examination{files_, pid}.run(); }

 private:
  MappedFiles files_;
};

}  // namespace

std::unique_ptr<Detector> make_detector() { return std::make_unique<ProcessDetector>(); }

}  // namespace pyinject::python
