#include "python/examine/interpreter_in_file.hpp"

#include "base/text.hpp"
#include "elf/architecture.hpp"
#include "elf/dynamic.hpp"
#include "elf/frame_pointers.hpp"
#include "python/examine/other_implementations.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/layout/trampoline_code.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>

namespace pyinject::python {

namespace {

constexpr auto kSymbols = std::to_array<std::string_view>({
    "Py_Initialize",
    "Py_Version",
    "_PyRuntime",
    "_Py_trampoline_func_start",
    "_Py_trampoline_func_end",
});

std::optional<elf::ElfFile> open_elf(const std::string& path) {
  base::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!fd.valid()) {
    return std::nullopt;
  }
  auto file = elf::ElfFile::open(std::move(fd));
  auto* const elf = std::get_if<elf::ElfFile>(&file);
  return elf == nullptr ? std::nullopt : std::optional{std::move(*elf)};
}

// Appends the directories of a search path; expands placeholders for the executable's own
// directory.
void append_folders(std::vector<std::string>& folders, std::string_view search,
                    const std::string& origin) {
  for (const auto piece : base::split(search, ':')) {
    std::string folder{piece};
    for (const std::string_view name : {"$ORIGIN", "${ORIGIN}"}) {
      if (const auto at = folder.find(name); at != std::string::npos) {
        folder.replace(at, name.size(), origin);
      }
    }
    if (!folder.empty()) {
      folders.push_back(std::move(folder));
    }
  }
}

// EXECUTABLE's libpython, as the dynamic loader would find it.
std::optional<std::pair<std::string, elf::ElfFile>> needed_libpython(const std::string& executable,
                                                                     const elf::ElfFile& file) {
  const auto dynamic = elf::read_dynamic(file);
  std::string name;
  for (const auto& library : dynamic.needed) {
    if (library.starts_with("libpython3") && library.find('/') == std::string::npos) {
      name = library;
    }
  }
  if (name.empty()) {
    return std::nullopt;
  }
  char* const resolved = ::realpath(executable.c_str(), nullptr);
  const std::string real = resolved == nullptr ? executable : resolved;
  ::free(resolved);  // NOLINT: realpath's
  std::vector<std::string> folders;
  const char* const library_path = std::getenv("LD_LIBRARY_PATH");
  append_folders(folders, library_path == nullptr ? "" : library_path, "");
  append_folders(folders, dynamic.search, real.substr(0, real.rfind('/')));
  append_folders(folders,
                 fmt::format("/usr/local/lib:{}:/lib64:/usr/lib64:/lib:/usr/lib",
                             elf::own_architecture().directories),
                 "");
  for (const auto& folder : folders) {
    auto path = fmt::format("{}/{}", folder, name);
    if (auto library = open_elf(path)) {
      return std::pair{std::move(path), *std::move(library)};
    }
  }
  return std::nullopt;
}

bool is_free_threaded(const elf::ElfFile& file, const Version& version, base::ElfAddress runtime) {
  const auto head = file.read_at(runtime, kDebugOffsetsBytes);
  if (!head) {
    return false;
  }
  const auto layout = parse_layout(version, *head);
  const auto* const known = std::get_if<RuntimeLayout>(&layout);
  return known != nullptr && known->free_threaded;
}

std::optional<Refusal> judge(const elf::ElfFile& file, const elf::Symbols& symbols,
                             const Version& version) {
  if (auto refusal = refuse_version(version)) {
    if (refusal->reason == Reason::kPythonTooOld) {
      refusal->remedy = kUseForOldPythons;
    }
    return refusal;
  }
  const auto begin = symbols.find("_Py_trampoline_func_start");
  const auto end = symbols.find("_Py_trampoline_func_end");
  if (begin == symbols.end() || end == symbols.end()) {
    return Refusal{
        .reason = Reason::kNoPerfTrampoline,
        .found = "it was built without the perf trampoline",
        .remedy =
            "record --engine bpf, or use a build with sysconfig's PY_HAVE_PERF_TRAMPOLINE set"};
  }
  const auto bytes = end->second.address.value() - begin->second.address.value();
  constexpr std::uint64_t kMostBytes = 64;
  const auto code = bytes <= kMostBytes ? file.read_at(begin->second.address, bytes) : std::nullopt;
  if (!code || !is_trampoline_code(*code)) {
    return Refusal{.reason = Reason::kBrokenTrampoline,
                   .found = "BOLT has changed its trampoline",
                   .remedy = "record --engine bpf, or use a build without BOLT"};
  }
  const auto runtime = symbols.find("_PyRuntime");
  if (runtime != symbols.end() && is_free_threaded(file, version, runtime->second.address)) {
    return Refusal{.reason = Reason::kFreeThreaded,
                   .found = "it is a free-threaded build",
                   .remedy =
                       "use a build with the GIL: without it the trampoline is not thread-safe "
                       "(cpython gh-152330)"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<InterpreterInFile> find_interpreter_in_file(const std::string& executable) {
  auto file = open_elf(executable);
  if (!file) {
    return std::nullopt;
  }
  InterpreterInFile result;
  result.path = executable;
  auto symbols = file->find_symbols(kSymbols);
  if (!symbols.contains("Py_Initialize")) {
    auto library = needed_libpython(executable, *file);
    if (!library) {
      return std::nullopt;
    }
    result.path = std::move(library->first);
    file = std::move(library->second);
    symbols = file->find_symbols(kSymbols);
  }
  result.frame_pointers = elf::keeps_frame_pointers(*file);
  const auto version = symbols.find("Py_Version");
  if (version == symbols.end()) {
    result.refusal = Refusal{.reason = Reason::kPythonTooOld,
                             .found = "it is older than Python 3.11: it has no Py_Version",
                             .remedy = kUseForOldPythons};
    return result;
  }
  const auto bytes = file->read_at(version->second.address, sizeof(std::uint64_t));
  if (!bytes) {
    return std::nullopt;
  }
  std::uint64_t hex = 0;
  std::memcpy(&hex, bytes->data(), sizeof hex);
  result.version = version_from_hex(hex);
  result.refusal = judge(*file, symbols, result.version);
  return result;
}

}  // namespace pyinject::python
