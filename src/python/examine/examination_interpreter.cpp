#include "base/text.hpp"
#include "elf/load_bias.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/open_mapped.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/stat.hpp"
#include "procfs/sysctl.hpp"
#include "pyinject/base/error.hpp"
#include "python/examine/examination.hpp"
#include "python/examine/other_implementations.hpp"
#include "python/layout/trampoline_code.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include <unistd.h>

namespace pyinject::python {

namespace {

// For access to /proc/PID/maps (kRead) or to its memory (kAttach): Yama restricts only the latter
// (PTRACE_MODE_READ and PTRACE_MODE_ATTACH in ptrace(2)).
enum class Access { kRead, kAttach };

std::string permission_remedy(const procfs::Status& status, Access access) {
  if (::geteuid() == 0) {
    const auto remedy = procfs::how_to_get(procfs::Capability::kSysPtrace);
    return status.uids[0] == 0 ? remedy
                               : fmt::format("it belongs to uid {}: {}", status.uids[0], remedy);
  }
  if (status.uids[0] != ::geteuid()) {
    return fmt::format(
        "it belongs to uid {}: run as root, or grant CAP_SYS_PTRACE (setcap cap_sys_ptrace+ep)",
        status.uids[0]);
  }
  const auto yama = procfs::read_sysctl("kernel.yama.ptrace_scope");
  if (access == Access::kAttach && yama && *yama == "3") {
    return "kernel.yama.ptrace_scope is 3, which only a reboot can lower";
  }
  if (access == Access::kAttach && yama && *yama != "0") {
    return fmt::format(
        "kernel.yama.ptrace_scope is {}: run as root, grant CAP_SYS_PTRACE, or set it to 0", *yama);
  }
  return "it has more rights than this tool or is not dumpable: run as root or grant "
         "CAP_SYS_PTRACE";
}

}  // namespace

void Examination::look_at_process() {
  if (pid_.value() == ::getpid()) {
    throw Refuse{Reason::kOwnProcess, "it is perf-pyinject itself", "name another pid"};
  }
  const auto stat = procfs::read_stat(pid_);
  auto status = procfs::read_status(pid_);
  if (!stat || !status) {
    throw Refuse{Reason::kNoSuchProcess, "no such process", ""};
  }
  if (status->process != pid_) {
    throw Refuse{Reason::kNoSuchProcess,
                 fmt::format("it is a thread of process {}", status->process.value()),
                 fmt::format("use -p {}", status->process.value())};
  }
  status_ = std::move(*status);
  target_.id = {.pid = pid_, .start_time = stat->start_time};
  target_.stack_begin = stat->stack_begin;
  if (stat->kernel_thread()) {
    throw Refuse{Reason::kKernelThread, "it is a kernel thread", ""};
  }
  if (status_.state == 'Z' && status_.threads <= 1) {
    throw Refuse{Reason::kZombie, "it is a zombie: it has exited and waits for its parent", ""};
  }
  if (status_.state == 'Z') {
    throw Refuse{
        Reason::kMainThreadGone,
        fmt::format("its main thread has exited, {} left",
                    base::counted(status_.threads - 1, "other thread is", "other threads are")),
        "restart the process"};
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
          permission_remedy(status_, Access::kRead)};
    }
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  maps_ = std::move(*maps);
  if (maps_.empty()) {
    throw Refuse{Reason::kExited, "it has no memory mapped any more: it is exiting", ""};
  }
}

void Examination::look_at_image() {
  target_.id.pid = pid_;
  target_.inner_pid = pid_;
  maps_ = image_->mappings().value_or(std::vector<procfs::Mapping>{});
}

std::variant<base::UniqueFd, procfs::NotOpened> Examination::open(
    const procfs::Mapping& mapping) const {
  return image_ != nullptr ? image_->open(mapping) : procfs::open_mapped_file(pid_, mapping);
}

std::shared_ptr<const MappedFile> Examination::look_at_file(const procfs::Mapping& mapping) {
  if (image_ == nullptr) {
    return files_.look(pid_, mapping, budget_, cancellation_).file;
  }
  if (given_up()) {
    return nullptr;
  }
  --budget_.files;
  auto opened = image_->open(mapping);
  auto* const file = std::get_if<base::UniqueFd>(&opened);
  return file == nullptr ? nullptr : files_.look(std::move(*file), budget_, cancellation_).file;
}

std::optional<Module> Examination::module_of(const procfs::Mapping& mapping) {
  auto file = look_at_file(mapping);
  if (file == nullptr) {
    return std::nullopt;
  }
  const auto bias = elf::load_bias(file->segments, mapping.begin, mapping.offset, true);
  if (!bias) {
    return std::nullopt;
  }
  const auto start = elf::start_of(file->segments, *bias);
  if (!procfs::shows(maps_, mapping, start.address, start.offset)) {
    return std::nullopt;
  }
  return Module{.file = std::move(file), .mapping = mapping, .bias = *bias};
}

Refuse Examination::not_examined() const {
  return {Reason::kNotExamined,
          fmt::format(
              "it maps too many or too large files ({} mappings) to find its interpreter in time",
              maps_.size()),
          "record it alone: -p " + std::to_string(pid_.value())};
}

void Examination::find_interpreter() {
  // Decides by file contents, not names: Python is embedded under any name. Files with python in
  // their names come first only for speed.
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
  const procfs::Mapping* nameless = nullptr;  // named like python, unrecognizable contents
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
    if (given_up()) {
      throw not_examined();
    }
    if (nameless != nullptr) {
      const auto path = base::printable(nameless->path);
      const auto opened = open(*nameless);
      if (const auto* failure = std::get_if<procfs::NotOpened>(&opened)) {
        if (image_ != nullptr) {
          throw Refuse{Reason::kNoLibpythonSymbols,
                       fmt::format("its interpreter {} is not at hand: {}", path, failure->why),
                       "use the machine or container in which the core was written"};
        }
        throw Refuse{Reason::kNoPermission, fmt::format("cannot open {}: {}", path, failure->why),
                     "run as root, or as a user who may read that file; if it was replaced, "
                     "restart the process"};
      }
      throw Refuse{
          Reason::kNoLibpythonSymbols, fmt::format("{} exports no CPython symbols", path),
          "use an interpreter whose dynamic symbol table is intact; one that is statically "
          "linked has its symbols unless it is stripped"};
    }
    if (const auto other = image_ != nullptr ? other_implementation(maps_, {})
                                             : find_other_implementation(pid_, maps_)) {
      throw Refuse{other->reason, other->found, other->remedy};
    }
    throw Refuse{Reason::kNotPython, "it is not a Python process", ""};
  }
  target_.interpreter = base::printable(interpreter_.mapping.path);
  target_.bias = interpreter_.bias;
  target_.text_begin = interpreter_.mapping.begin;
  for (const auto& mapping : maps_) {
    if (mapping.executable && mapping.inode == interpreter_.mapping.inode &&
        mapping.device_major == interpreter_.mapping.device_major &&
        mapping.device_minor == interpreter_.mapping.device_minor &&
        elf::load_bias(interpreter_.file->segments, mapping.begin, mapping.offset, true) ==
            interpreter_.bias) {
      target_.text_end = std::max(target_.text_end, mapping.end);
    }
  }
  if (interpreter_.file->frame_pointer_share) {
    frame_pointers_ = *interpreter_.file->frame_pointer_share >= 0.5;
    target_.frame_pointers = *frame_pointers_;
  }
}

// The loader maps a library's segments one after another, in order of address; before that, the
// whole file as one mapping. Events report the code mapping before the data is mapped.
void Examination::check_loaded() const {
  if (!interpreter_.file->defines("_PyRuntime")) {
    return;
  }
  const auto* const data = procfs::find_mapping(maps_, interpreter_.address("_PyRuntime"));
  if (data == nullptr || !data->writable) {
    throw Refuse{Reason::kNotInitialized, "its interpreter is being loaded",
                 "try again when the program has started"};
  }
}

// Whether it has called any function of its libpython: perf is linked to one for its scripts.
// FLAGS: five numbers of what is initialized, the last of which is `initialized` (_PyRuntimeState
// in Include/internal/pycore_runtime.h, 3.8 to 3.15).
bool Examination::has_started(base::RemoteAddress flags) const {
  using Flags = std::array<std::uint32_t, 5>;
  return memory_.read_value<Flags>(flags) != Flags{};
}

void Examination::read_version() {
  if (!interpreter_.file->defines("Py_Version")) {
    throw Refuse{Reason::kPythonTooOld, "it is older than Python 3.11: it has no Py_Version",
                 kUseForOldPythons};
  }
  const auto hex = memory_.read_value<std::uint64_t>(interpreter_.address("Py_Version"));
  if (!hex && image_ != nullptr) {
    throw Refuse{Reason::kLayoutMismatch, "its Py_Version cannot be read", ""};
  }
  if (!hex) {
    const int error = errno;
    if (error == EPERM || error == EACCES) {
      throw Refuse{Reason::kNoPermission,
                   fmt::format("process_vm_readv: {}", base::errno_text(error)),
                   permission_remedy(status_, Access::kAttach)};
    }
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  target_.version = version_from_hex(*hex);
  if (auto refusal = refuse_version(target_.version, purpose_)) {
    const bool old = refusal->reason == Reason::kPythonTooOld;
    // Up to 3.11, _PyRuntimeState begins with the flags.
    if (old && interpreter_.file->defines("_PyRuntime") &&
        !has_started(interpreter_.address("_PyRuntime"))) {
      throw Refuse{Reason::kNotPython, "it has Python's library, but has not started Python", ""};
    }
    throw Refuse{refusal->reason, refusal->found, old ? kUseForOldPythons : refusal->remedy};
  }
}

void Examination::check_symbols() {
  const auto& file = *interpreter_.file;
  if (purpose_ == Purpose::kObserve) {
    if (!file.defines("_PyRuntime")) {
      throw Refuse{Reason::kNoLibpythonSymbols,
                   fmt::format("{} does not export _PyRuntime", target_.interpreter),
                   "use an interpreter whose dynamic symbol table is intact"};
    }
    return;
  }
  if (!file.defines("_Py_trampoline_func_start") || !file.defines("_Py_trampoline_func_end")) {
    throw Refuse{
        Reason::kNoPerfTrampoline,
        fmt::format("{} was built without the perf trampoline", target_.interpreter),
        "record --engine bpf, or use a build with sysconfig's PY_HAVE_PERF_TRAMPOLINE set"};
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
  // It may also have a libc.so.6 mapped: for a module, or to look up host or user names.
  if (file.is_c_library() && !file.serves_requests()) {
    throw Refuse{Reason::kNoMailboxSpace,
                 "it is statically linked: " + target_.interpreter +
                     " has a C library in it that lacks what a request needs",
                 "record --engine bpf, or use a dynamically linked build"};
  }
  check_trampoline();
}

// BOLT moves the end marker: CPython then copies megabytes as one trampoline and crashes (cpython
// gh-128883). Or it moves the start marker, and the markers enclose other code.
void Examination::check_trampoline() const {
  constexpr std::uint64_t kMostBytes = 64;
  const auto begin = interpreter_.address("_Py_trampoline_func_start");
  const auto end = interpreter_.address("_Py_trampoline_func_end");
  const auto remedy =
      "record --engine bpf, or use a build without BOLT, or a python-build-standalone from "
      "20261021 on";
  if (end <= begin || end.value() - begin.value() > kMostBytes) {
    throw Refuse{Reason::kBrokenTrampoline,
                 fmt::format("its trampoline would be {} bytes long: a build damaged by BOLT",
                             static_cast<std::int64_t>(end.value() - begin.value())),
                 remedy};
  }
  std::vector<std::byte> code(end.value() - begin.value());
  if (!memory_.read(begin, code) || !is_trampoline_code(code)) {
    throw Refuse{Reason::kBrokenTrampoline,
                 fmt::format("the {} bytes between the trampoline's markers are not its code: a "
                             "build damaged by BOLT",
                             code.size()),
                 remedy};
  }
}

}  // namespace pyinject::python
