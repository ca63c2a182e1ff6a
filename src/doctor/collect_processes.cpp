#include "doctor/collect.hpp"
#include "elf/elf_file.hpp"
#include "procfs/maps.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

namespace pyinject::doctor {

namespace {

// The file that distributions' packages of debug symbols install, by build-id.
bool has_debug_file(const std::optional<std::string>& build_id) {
  constexpr std::size_t kDirectory = 2;
  if (!build_id || build_id->size() <= kDirectory) {
    return false;
  }
  std::error_code error;
  return std::filesystem::exists(
      fmt::format("/usr/lib/debug/.build-id/{}/{}.debug", build_id->substr(0, kDirectory),
                  build_id->substr(kDirectory)),
      error);
}

std::optional<CodeFile> code_file(base::Pid pid, const procfs::Mapping& mapping) {
  auto opened = procfs::open_mapped_file(pid, mapping);
  auto* const descriptor = std::get_if<base::UniqueFd>(&opened);
  if (descriptor == nullptr) {
    return std::nullopt;
  }
  const auto elf = elf::ElfFile::open(std::move(*descriptor));
  const auto* const file = std::get_if<elf::ElfFile>(&elf);
  if (file == nullptr) {
    return std::nullopt;
  }
  return CodeFile{.path = mapping.path,
                  .symbols = file->section(".symtab") || has_debug_file(file->build_id())};
}

bool is_libc(const std::string& path) {
  const auto file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libc.so.") || file.starts_with("libc-2") || file.starts_with("ld-musl-");
}

void find_code_files(ProcessFacts& facts, base::Pid pid) {
  const auto& status = facts.bpf.interpreter.empty() ? facts.trampoline : facts.bpf;
  for (const auto& mapping : procfs::read_maps(pid).value_or(std::vector<procfs::Mapping>{})) {
    if (!mapping.executable || mapping.path.empty()) {
      continue;
    }
    if (!facts.interpreter && mapping.path == status.interpreter) {
      facts.interpreter = code_file(pid, mapping);
    } else if (!facts.libc && is_libc(mapping.path)) {
      facts.libc = code_file(pid, mapping);
    }
  }
}

}  // namespace

std::vector<ProcessFacts> collect_processes(const std::vector<base::Pid>& pids) {
  std::vector<ProcessFacts> all;
  const auto detector = python::make_detector();
  const auto observer = python::make_detector(python::Purpose::kObserve);
  auto described = targets::report_status(*detector, pids);
  auto observed = targets::report_status(*observer, pids);
  for (std::size_t i = 0; i < described.processes.size(); ++i) {
    ProcessFacts facts;
    facts.trampoline = std::move(described.processes[i]);
    facts.bpf = std::move(observed.processes[i]);
    const auto pid = facts.trampoline.pid;
    facts.other_mounts = !procfs::in_our_namespace(pid, procfs::Namespace::kMount).value_or(true) ||
                         !procfs::root_is_ours(pid).value_or(true);
    try {
      find_code_files(facts, pid);
    } catch (const base::Error&) {  // it may exit at any time, or be unreadable
      facts.interpreter.reset();
    }
    all.push_back(std::move(facts));
  }
  return all;
}

}  // namespace pyinject::doctor
