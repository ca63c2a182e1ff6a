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

void look_at_process(Examined& process) {
  if (process.pid.value() == ::getpid()) {
    throw Refuse{Reason::kOwnProcess, "it is perf-pyinject itself", "name another pid"};
  }
  const auto stat = procfs::read_stat(process.pid);
  auto status = procfs::read_status(process.pid);
  if (!stat || !status) {
    throw Refuse{Reason::kNoSuchProcess, "no such process", ""};
  }
  if (status->process != process.pid) {
    throw Refuse{Reason::kNoSuchProcess,
                 fmt::format("it is a thread of process {}", status->process.value()),
                 fmt::format("use -p {}", status->process.value())};
  }
  process.status = std::move(*status);
  process.target.id = {.pid = process.pid, .start_time = stat->start_time};
  process.target.stack_begin = stat->stack_begin;
  if (stat->kernel_thread()) {
    throw Refuse{Reason::kKernelThread, "it is a kernel thread", ""};
  }
  if (process.status.state == 'Z' && process.status.threads <= 1) {
    throw Refuse{Reason::kZombie, "it is a zombie: it has exited and waits for its parent", ""};
  }
  if (process.status.state == 'Z') {
    throw Refuse{Reason::kMainThreadGone,
                 fmt::format("its main thread has exited, {} left",
                             base::counted(process.status.threads - 1, "other thread is",
                                           "other threads are")),
                 "restart the process"};
  }
  process.target.inner_pid = procfs::inner_pid(process.status);
  process.target.map_path = fmt::format("/tmp/perf-{}.map", process.target.inner_pid.value());
  process.target.foreign_namespace =
      process.target.inner_pid != process.pid ||
      !procfs::root_is_ours(process.pid).value_or(false) ||
      !procfs::in_our_namespace(process.pid, procfs::Namespace::kMount).value_or(false);

  auto maps = procfs::read_maps(process.pid);
  if (!maps) {
    const int error = errno;
    if (error == EACCES || error == EPERM) {
      throw Refuse{Reason::kNoPermission,
                   fmt::format("cannot read /proc/{}/maps: {}", process.pid.value(),
                               base::errno_text(error)),
                   permission_remedy(process.status, Access::kRead)};
    }
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  process.maps = std::move(*maps);
  if (process.maps.empty()) {
    throw Refuse{Reason::kExited, "it has no memory mapped any more: it is exiting", ""};
  }
}

void look_at_image(Examined& process) {
  process.target.id.pid = process.pid;
  process.target.inner_pid = process.pid;
  process.maps = process.image->mappings().value_or(std::vector<procfs::Mapping>{});
}

// The loader maps a library's segments one after another, in order of address; before that, the
// whole file as one mapping. Events report the code mapping before the data is mapped.
void check_loaded(const Examined& process) {
  if (!process.interpreter.file->defines("_PyRuntime")) {
    return;
  }
  const auto* const data =
      procfs::find_mapping(process.maps, process.interpreter.address("_PyRuntime"));
  if (data == nullptr || !data->writable) {
    throw Refuse{Reason::kNotInitialized, "its interpreter is being loaded",
                 "try again when the program has started"};
  }
}

void read_version(Examined& process) {
  if (!process.interpreter.file->defines("Py_Version")) {
    throw Refuse{Reason::kPythonTooOld, "it is older than Python 3.11: it has no Py_Version",
                 kUseForOldPythons};
  }
  const auto hex =
      process.memory->read_value<std::uint64_t>(process.interpreter.address("Py_Version"));
  if (!hex && process.image != nullptr) {
    throw Refuse{Reason::kLayoutMismatch, "its Py_Version cannot be read", ""};
  }
  if (!hex) {
    const int error = errno;
    if (error == EPERM || error == EACCES) {
      throw Refuse{Reason::kNoPermission,
                   fmt::format("process_vm_readv: {}", base::errno_text(error)),
                   permission_remedy(process.status, Access::kAttach)};
    }
    throw Refuse{Reason::kExited, "it has ended", ""};
  }
  process.target.version = version_from_hex(*hex);
  if (auto refusal = refuse_version(process.target.version, process.purpose)) {
    const bool old = refusal->reason == Reason::kPythonTooOld;
    // Up to 3.11, _PyRuntimeState begins with the flags.
    if (old && process.interpreter.file->defines("_PyRuntime") &&
        !process.has_started(process.interpreter.address("_PyRuntime"))) {
      throw Refuse{Reason::kNotPython, "it has Python's library, but has not started Python", ""};
    }
    throw Refuse{refusal->reason, refusal->found, old ? kUseForOldPythons : refusal->remedy};
  }
}

// BOLT moves the end marker: CPython then copies megabytes as one trampoline and crashes (cpython
// gh-128883). Or it moves the start marker, and the markers enclose other code.
void check_trampoline(const Examined& process) {
  constexpr std::uint64_t kMostBytes = 64;
  const auto begin = process.interpreter.address("_Py_trampoline_func_start");
  const auto end = process.interpreter.address("_Py_trampoline_func_end");
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
  if (!process.memory->read(begin, code) || !is_trampoline_code(code)) {
    throw Refuse{Reason::kBrokenTrampoline,
                 fmt::format("the {} bytes between the trampoline's markers are not its code: a "
                             "build damaged by BOLT",
                             code.size()),
                 remedy};
  }
}

void check_symbols(Examined& process) {
  const auto& file = *process.interpreter.file;
  if (process.purpose == Purpose::kObserve) {
    if (!file.defines("_PyRuntime")) {
      throw Refuse{Reason::kNoLibpythonSymbols,
                   fmt::format("{} does not export _PyRuntime", process.target.interpreter),
                   "use an interpreter whose dynamic symbol table is intact"};
    }
    return;
  }
  if (!file.defines("_Py_trampoline_func_start") || !file.defines("_Py_trampoline_func_end")) {
    throw Refuse{
        Reason::kNoPerfTrampoline,
        fmt::format("{} was built without the perf trampoline", process.target.interpreter),
        "record --engine bpf, or use a build with sysconfig's PY_HAVE_PERF_TRAMPOLINE set"};
  }
  for (const auto* symbol :
       {"_PyRuntime", "PyRun_SimpleString", "Py_AddPendingCall", "_PyEval_AddPendingCall",
        "PyGILState_Ensure", "PyGILState_Release", "_PyInterpreterState_GetEvalFrameFunc"}) {
    if (!file.defines(symbol)) {
      throw Refuse{Reason::kNoLibpythonSymbols,
                   fmt::format("{} does not export {}", process.target.interpreter, symbol),
                   "use an interpreter whose dynamic symbol table is intact"};
    }
  }
  // It may also have a libc.so.6 mapped: for a module, or to look up host or user names.
  if (file.is_c_library() && !file.serves_requests()) {
    throw Refuse{Reason::kNoMailboxSpace,
                 "it is statically linked: " + process.target.interpreter +
                     " has a C library in it that lacks what a request needs",
                 "record --engine bpf, or use a dynamically linked build"};
  }
  check_trampoline(process);
}

}  // namespace

void find_interpreter(Examined& process) {
  process.image != nullptr ? look_at_image(process) : look_at_process(process);
  // Decides by file contents, not names: Python is embedded under any name. Files with python in
  // their names come first only for speed.
  std::vector<const procfs::Mapping*> candidates;
  for (const auto& mapping : process.maps) {
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
    const auto module = process.module_of(*mapping);
    if (module && module->file->is_interpreter()) {
      process.interpreter = *module;
      break;
    }
    const auto name = mapping->path.substr(mapping->path.rfind('/') + 1);
    if (name.starts_with("python3") || name.starts_with("libpython3")) {
      nameless = mapping;
    }
  }
  if (process.interpreter.file == nullptr) {
    if (process.given_up()) {
      throw process.not_examined();
    }
    if (nameless != nullptr) {
      const auto path = base::printable(nameless->path);
      const auto opened = process.open(*nameless);
      if (const auto* failure = std::get_if<procfs::NotOpened>(&opened)) {
        if (process.image != nullptr) {
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
    if (const auto other = process.image != nullptr
                               ? other_implementation(process.maps, {})
                               : find_other_implementation(process.pid, process.maps)) {
      throw Refuse{other->reason, other->found, other->remedy};
    }
    throw Refuse{Reason::kNotPython, "it is not a Python process", ""};
  }
  process.target.interpreter = base::printable(process.interpreter.mapping.path);
  process.target.bias = process.interpreter.bias;
  process.target.text_begin = process.interpreter.mapping.begin;
  for (const auto& mapping : process.maps) {
    if (mapping.executable && mapping.inode == process.interpreter.mapping.inode &&
        mapping.device_major == process.interpreter.mapping.device_major &&
        mapping.device_minor == process.interpreter.mapping.device_minor &&
        elf::load_bias(process.interpreter.file->segments, mapping.begin, mapping.offset, true) ==
            process.interpreter.bias) {
      process.target.text_end = std::max(process.target.text_end, mapping.end);
    }
  }
  process.target.frame_pointers = process.interpreter.file->frame_pointers.value_or(false);
}

void check_interpreter(Examined& process) {
  check_loaded(process);
  read_version(process);
  check_symbols(process);
}

}  // namespace pyinject::python
