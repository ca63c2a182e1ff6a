#include "elf/core_file.hpp"

#include "elf/architecture.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::elf {

namespace {

// vm.max_map_count is 65530 by default.
constexpr std::size_t kMostCoreHeaders = std::size_t{1} << 18U;
// One thread has some ten notes.
constexpr std::size_t kMostCoreNotes = std::size_t{1} << 20U;
// Of all notes together. The largest one is NT_FILE, of 16 MiB at most:
// kernel.core_file_note_size_max.
constexpr std::uint64_t kMostCoreNoteBytes = std::uint64_t{128} << 20U;
constexpr std::uint64_t kMostOwnerBytes = 64;

// Reads a file of known size.
class CoreBytes {
 public:
  CoreBytes(int fd, std::uint64_t size) : fd_{fd}, size_{size} {}

  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> into) const {
    if (offset > size_ || into.size() > size_ - offset) {
      return false;
    }
    while (!into.empty()) {
      const ssize_t got = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return false;
      }
      into = into.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return true;
  }
  template <typename Value>
  [[nodiscard]] std::optional<Value> value(std::uint64_t offset) const {
    Value value{};
    return read(offset, std::as_writable_bytes(std::span{&value, 1})) ? std::optional{value}
                                                                      : std::nullopt;
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  int fd_;
  std::uint64_t size_;
};

// systemd-coredump and others compress cores.
std::optional<NotCore> why_compressed(const CoreBytes& bytes) {
  struct Form {
    std::string_view magic;
    const char* tool;
  };
  constexpr auto kForms = std::to_array<Form>({{"\x28\xb5\x2f\xfd", "zstd"},
                                               {"\x04\x22\x4d\x18", "lz4"},
                                               {"\xfd\x37zX", "xz"},
                                               {"\x1f\x8b", "gzip"}});
  const auto magic = bytes.value<std::array<char, 4>>(0);
  for (const auto& [begin, tool] : kForms) {
    if (magic && std::string_view{magic->data(), magic->size()}.starts_with(begin)) {
      return NotCore{fmt::format("it is compressed: decompress it with {} -d first", tool)};
    }
  }
  return std::nullopt;
}

std::optional<NotCore> why_no_core(const CoreBytes& bytes, const Elf64_Ehdr& header) {
  const auto& ident = header.e_ident;
  if (bytes.size() < EI_NIDENT || std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
    auto compressed = why_compressed(bytes);
    return compressed ? std::move(compressed) : NotCore{"it is not a core file"};
  }
  if (ident[EI_CLASS] == ELFCLASS32) {
    return NotCore{fmt::format("it is a file of a 32-bit program; only {} is supported",
                               own_architecture().name)};
  }
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != own_architecture().number) {
    return NotCore{
        fmt::format("it is a file of another architecture (ELF machine {}); only {} is supported",
                    header.e_machine, own_architecture().name)};
  }
  if (header.e_type != ET_CORE) {
    return NotCore{header.e_type == ET_EXEC || header.e_type == ET_DYN
                       ? "it is not a core file, but a program or library"
                       : "it is not a core file"};
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    return NotCore{fmt::format("its program headers have {} bytes each instead of {}",
                               header.e_phentsize, sizeof(Elf64_Phdr))};
  }
  return std::nullopt;
}

NotCore truncated_in(std::string_view part, const CoreBytes& bytes) {
  return {fmt::format("it is truncated: {} are missing behind its {} bytes", part, bytes.size())};
}

// Larger counts are in the first section header: PN_XNUM, elf(5).
std::optional<std::uint64_t> count_of_headers(const CoreBytes& bytes, const Elf64_Ehdr& header) {
  if (header.e_phnum != PN_XNUM) {
    return header.e_phnum;
  }
  const auto section = bytes.value<Elf64_Shdr>(header.e_shoff);
  return section ? std::optional<std::uint64_t>{section->sh_info} : std::nullopt;
}

std::uint64_t end_in_file(const Elf64_Phdr& header) {
  const auto most = std::numeric_limits<std::uint64_t>::max() - header.p_offset;
  return header.p_offset + std::min(most, header.p_filesz);
}

// Limits for all notes of a file.
struct NoteBudget {
  std::size_t notes = kMostCoreNotes;
  std::uint64_t bytes = kMostCoreNoteBytes;
};

// Reads the notes from OFFSET up to END, each padded to 4 bytes. False: they are damaged.
bool read_notes(const CoreBytes& bytes, std::uint64_t offset, std::uint64_t end, CoreNotes& notes,
                NoteBudget& budget) {
  constexpr std::uint64_t kAlign = 4;
  const auto padded = [](std::uint64_t size) { return (size + kAlign - 1) / kAlign * kAlign; };
  std::vector<std::byte> content;
  while (offset < end && end - offset >= sizeof(Elf64_Nhdr) && budget.notes != 0) {
    --budget.notes;
    const auto header = bytes.value<Elf64_Nhdr>(offset);
    if (!header) {
      return false;
    }
    const auto owner_at = offset + sizeof *header;
    const auto content_at = owner_at + padded(header->n_namesz);
    const auto next = content_at + padded(header->n_descsz);
    if (content_at + header->n_descsz > end || next < offset) {
      return false;
    }
    if (header->n_namesz != 0 && header->n_namesz <= kMostOwnerBytes) {
      std::string owner(header->n_namesz, '\0');
      if (!bytes.read(owner_at, std::as_writable_bytes(std::span{owner}))) {
        return false;
      }
      owner.resize(owner.find('\0') == std::string::npos ? owner.size() : owner.find('\0'));
      if (CoreNotes::reads(owner, header->n_type) && header->n_descsz <= budget.bytes) {
        budget.bytes -= header->n_descsz;
        content.resize(header->n_descsz);
        if (!bytes.read(content_at, content)) {
          return false;
        }
        notes.add({.owner = std::move(owner), .type = header->n_type, .bytes = content});
      }
    }
    offset = next;
  }
  return true;
}

// A segment that wraps around, or that overlaps the one before it, is no mapping.
void sort_segments(std::vector<Segment>& segments) {
  const auto begin_of = [](const Segment& segment) { return segment.address.value(); };
  std::ranges::stable_sort(segments, {}, begin_of);
  std::uint64_t behind = 0;
  std::erase_if(segments, [&](const Segment& segment) {
    const auto begin = segment.address.value();
    const bool wrong = segment.memory_size == 0 || begin < behind ||
                       segment.memory_size > std::numeric_limits<std::uint64_t>::max() - begin;
    behind = wrong ? behind : begin + segment.memory_size;
    return wrong;
  });
}

}  // namespace

std::variant<CoreFile, NotCore> CoreFile::open(base::UniqueFd file) {
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) {
    return NotCore{base::errno_text(errno)};
  }
  if (!S_ISREG(found.st_mode)) {
    return NotCore{"it is not a regular file"};
  }
  CoreFile core;
  core.size_ = static_cast<std::uint64_t>(found.st_size);
  const CoreBytes bytes{file.get(), core.size_};
  Elf64_Ehdr header{};
  const auto head = std::min<std::uint64_t>(sizeof header, core.size_);
  if (!bytes.read(0, std::as_writable_bytes(std::span{&header, 1}).first(head))) {
    return NotCore{"it cannot be read"};
  }
  if (auto why = why_no_core(bytes, header)) {
    return std::move(*why);
  }
  const auto count = count_of_headers(bytes, header);
  if (!count || *count > kMostCoreHeaders) {
    return count ? NotCore{fmt::format("it has too many program headers: {}", *count)}
                 : truncated_in("its headers", bytes);
  }
  std::vector<Elf64_Phdr> headers(*count);
  if (!bytes.read(header.e_phoff, std::as_writable_bytes(std::span{headers}))) {
    return truncated_in("its program headers", bytes);
  }
  NoteBudget budget;
  bool notes_whole = true;
  for (const auto& one : headers) {
    core.expected_size_ = std::max(core.expected_size_, end_in_file(one));
    if (one.p_type == PT_LOAD) {
      core.segments_.push_back({.type = one.p_type,
                                .flags = one.p_flags,
                                .address = base::ElfAddress{one.p_vaddr},
                                .memory_size = one.p_memsz,
                                .offset = one.p_offset,
                                .file_size = std::min(one.p_filesz, one.p_memsz),
                                .align = one.p_align});
    } else if (one.p_type == PT_NOTE) {
      notes_whole =
          read_notes(bytes, one.p_offset, end_in_file(one), core.notes_, budget) && notes_whole;
    }
  }
  if (core.notes_.threads.empty() || !notes_whole) {
    return core.truncated() ? truncated_in("its notes about the threads", bytes)
                            : NotCore{"it has no notes about the threads of a process"};
  }
  sort_segments(core.segments_);
  core.file_ = std::move(file);
  return core;
}

const Segment* CoreFile::find(base::RemoteAddress address) const {
  const auto behind =
      std::ranges::upper_bound(segments_, address.value(), {},
                               [](const Segment& segment) { return segment.address.value(); });
  if (behind == segments_.begin()) {
    return nullptr;
  }
  const auto& segment = *std::prev(behind);
  return address.value() - segment.address.value() < segment.memory_size ? &segment : nullptr;
}

bool CoreFile::read(const Segment& segment, base::RemoteAddress address,
                    std::span<std::byte> into) const {
  const auto at = address.value() - segment.address.value();
  if (address.value() < segment.address.value() || at > segment.file_size ||
      into.size() > segment.file_size - at ||
      segment.offset > std::numeric_limits<std::uint64_t>::max() - at) {
    return false;
  }
  return CoreBytes{file_.get(), size_}.read(segment.offset + at, into);
}

}  // namespace pyinject::elf
