#include "python/examine/mapped_file.hpp"

#include "elf/frame_pointers.hpp"
#include "procfs/open_mapped.hpp"
#include "tracee/signal_frames.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

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
    "PyCode_Type",
    "PyGILState_Release",
    "_PyInterpreterState_GetEvalFrameFunc",
    "PyCode_ClearWatcher",
    "_Py_RefTotal",
    "_Py_trampoline_func_start",
    "_Py_trampoline_func_end",
    "sem_post",
    "__libc_start_main",
    "__pthread_unwind_next",
    "__libc_setup_tls",
});

// Limit for an interpreter, C library or executable; linkers make a dozen segments.
constexpr std::size_t kMostFileSegments = 64;
constexpr std::size_t kMostFilesKnown = 16384;
// Limit per file: a forged file can have a thousand segments with the same bytes.
constexpr std::uint64_t kMostSearched = std::uint64_t{64} << 20U;

// The first occurrence of PATTERN in the segments with FLAGS.
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

std::shared_ptr<const MappedFile> inspect_file(base::UniqueFd fd, std::uint64_t& bytes,
                                               const base::Cancellation& cancellation) {
  auto opened = elf::ElfFile::open(std::move(fd));
  const auto* file = std::get_if<elf::ElfFile>(&opened);
  if (file == nullptr || file->segments().size() > kMostFileSegments) {
    return nullptr;
  }
  auto result = std::make_shared<MappedFile>();
  result->segments = file->segments();
  result->symbols = file->find_symbols(kWantedSymbols, cancellation);
  result->has_program_interpreter =
      std::any_of(result->segments.begin(), result->segments.end(),
                  [](const elf::Segment& segment) { return segment.type == PT_INTERP; });
  if (!cancellation.stopped() && result->defines("sem_post")) {
    result->restorer = search(*file, PF_R | PF_X, tracee::restorer_code());
  }
  if (!cancellation.stopped() && result->is_interpreter()) {
    static constexpr std::string_view kVariable{"\0PYTHON_JIT\0", 12};
    result->mentions_jit =
        search(*file, PF_R, std::as_bytes(std::span{kVariable.data(), kVariable.size()}))
            .has_value();
    if (const auto share = elf::frame_pointer_share(*file)) {
      result->frame_pointers = *share >= 0.5;
    }
  }
  bytes = file->bytes_read();
  return result->symbols.empty() && !result->has_program_interpreter ? nullptr : result;
}

MappedFiles::Key MappedFiles::key_of(const struct stat& facts) {
  return {facts.st_dev, facts.st_ino, facts.st_size, nanoseconds_of(facts.st_mtim),
          nanoseconds_of(facts.st_ctim)};
}

std::optional<MappedFiles::Look> MappedFiles::find(const Key& key) {
  const std::scoped_lock lock{mutex_};
  const auto known = known_.find(key);
  return known == known_.end() ? std::nullopt
                               : std::optional{Look{.opened = true, .file = known->second}};
}

MappedFiles::Look MappedFiles::look(base::Pid pid, const procfs::Mapping& mapping,
                                    FileBudget& budget, const base::Cancellation& cancellation) {
  // First try without opening the file.
  const auto facts =
      mapping.end.value() != 0 ? procfs::stat_mapped_file(pid, mapping) : std::nullopt;
  if (facts) {
    if (auto known = find(key_of(*facts))) {
      return *known;
    }
  }
  if (budget.spent() || cancellation.stopped()) {
    return {};
  }
  --budget.files;
  auto opened = procfs::open_mapped_file(pid, mapping);
  auto* fd = std::get_if<base::UniqueFd>(&opened);
  // A failure is not cached: another process may be permitted to open it.
  return fd == nullptr ? Look{} : look(std::move(*fd), budget, cancellation);
}

MappedFiles::Look MappedFiles::look(base::UniqueFd file, FileBudget& budget,
                                    const base::Cancellation& cancellation) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return {};
  }
  const auto key = key_of(info);
  if (auto known = find(key)) {
    return *known;
  }
  std::uint64_t bytes = 0;
  auto inspected = inspect_file(std::move(file), bytes, cancellation);  // perhaps by two threads
  budget.bytes -= std::min(budget.bytes, bytes);
  if (cancellation.stopped()) {
    return {};
  }
  const std::scoped_lock lock{mutex_};
  if (known_.size() >= kMostFilesKnown) {
    std::erase_if(known_, [](const auto& one) {
      return one.second == nullptr || !one.second->is_interpreter();
    });
  }
  if (known_.size() >= kMostFilesKnown) {
    known_.clear();
  }
  return {.opened = true, .file = known_.try_emplace(key, std::move(inspected)).first->second};
}

}  // namespace pyinject::python
