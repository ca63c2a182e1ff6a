#include "mapped_file.hpp"

#include "pyinject/elf/frame_pointers.hpp"
#include "pyinject/procfs/open_mapped.hpp"
#include "pyinject/tracee/signal_frames.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <elf.h>
#include <sys/stat.h>

namespace pyinject::python {

namespace {

constexpr auto kWantedSymbols = std::to_array<std::string_view>({
    "Py_Initialize",
    "PyRun_SimpleStringFlags",
    "_PyRuntime",
    "Py_Version",
    "PyRun_SimpleString",
    "Py_AddPendingCall",
    "_PyEval_AddPendingCall",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "_PyInterpreterState_GetEvalFrameFunc",
    "PyCode_ClearWatcher",
    "_Py_trampoline_func_start",
    "_Py_trampoline_func_end",
    "sem_post",
    "__libc_start_main",
    "__pthread_unwind_next",
});

// Of one file: a target can make a thousand segments of the same bytes.
constexpr std::uint64_t kMostSearched = std::uint64_t{64} << 20U;

// The first place of PATTERN in the segments with FLAGS.
std::optional<base::ElfAddress> search(const elf::ElfFile& file, std::uint32_t flags,
                                       std::span<const std::byte> pattern) {
  std::uint64_t left = kMostSearched;
  for (const auto& segment : file.segments()) {
    if (!segment.is_load() || segment.flags != flags || segment.file_size > left) {
      continue;
    }
    left -= segment.file_size;
    const auto bytes = file.read_at(segment.address, segment.file_size);
    if (!bytes || bytes->empty()) {
      continue;
    }
    const void* const found =
        ::memmem(bytes->data(), bytes->size(), pattern.data(), pattern.size());
    if (found != nullptr) {
      return base::ElfAddress{
          segment.address.value() +
          static_cast<std::uint64_t>(static_cast<const std::byte*>(found) - bytes->data())};
    }
  }
  return std::nullopt;
}

std::int64_t nanoseconds_of(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

std::optional<MappedFile> inspect_file(base::UniqueFd fd) {
  auto opened = elf::ElfFile::open(std::move(fd));
  const auto* file = std::get_if<elf::ElfFile>(&opened);
  if (file == nullptr) {
    return std::nullopt;
  }
  MappedFile result;
  result.segments = file->segments();
  result.symbols = file->find_symbols(kWantedSymbols);
  result.has_program_interpreter =
      std::any_of(result.segments.begin(), result.segments.end(),
                  [](const elf::Segment& segment) { return segment.type == PT_INTERP; });
  if (result.defines("sem_post")) {
    result.restorer = search(*file, PF_R | PF_X, tracee::restorer_code());
  }
  if (result.is_interpreter()) {
    static constexpr std::string_view kVariable{"\0PYTHON_JIT\0", 12};
    result.mentions_jit =
        search(*file, PF_R, std::as_bytes(std::span{kVariable.data(), kVariable.size()}))
            .has_value();
    result.frame_pointer_share = elf::frame_pointer_share(*file);
  }
  return result;
}

const std::optional<MappedFile>* MappedFiles::look(base::Pid pid, const procfs::Mapping& mapping) {
  auto opened = procfs::open_mapped_file(pid, mapping);
  auto* fd = std::get_if<base::UniqueFd>(&opened);
  struct stat info {};
  if (fd == nullptr || ::fstat(fd->get(), &info) != 0) {
    return nullptr;  // not remembered: another process may be allowed to open it
  }
  const Key key{info.st_dev, info.st_ino, info.st_size, nanoseconds_of(info.st_mtim),
                nanoseconds_of(info.st_ctim)};
  {
    const std::scoped_lock lock{mutex_};
    if (const auto known = known_.find(key); known != known_.end()) {
      return &known->second;
    }
  }
  auto inspected = inspect_file(std::move(*fd));  // may take a while, or be done twice
  const std::scoped_lock lock{mutex_};
  return &known_.try_emplace(key, std::move(inspected)).first->second;
}

const MappedFile* MappedFiles::get(base::Pid pid, const procfs::Mapping& mapping) {
  const auto* const file = look(pid, mapping);
  return file != nullptr && *file ? &**file : nullptr;
}

std::optional<bool> MappedFiles::is_interpreter(base::Pid pid, const procfs::Mapping& mapping) {
  const auto* const file = look(pid, mapping);
  if (file == nullptr) {
    return std::nullopt;
  }
  return *file && (*file)->is_interpreter();
}

}  // namespace pyinject::python
