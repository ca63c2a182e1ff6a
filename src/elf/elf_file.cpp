#include "elf/elf_file.hpp"

#include "base/text.hpp"
#include "elf/architecture.hpp"
#include "elf/elf_impl.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::elf {

namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{4} << 30;
constexpr std::size_t kMostSegments = 1024;
constexpr std::size_t kMostReadBytes = std::size_t{64} << 20;

std::optional<std::string> why_not_a_file(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) {
    return base::errno_text(errno);
  }
  if (!S_ISREG(found.st_mode)) {
    return "not a regular file";
  }
  if (static_cast<std::uint64_t>(found.st_size) > kMostFileBytes) {
    return fmt::format("too large: {} bytes, at most {} are read", found.st_size, kMostFileBytes);
  }
  return std::nullopt;
}

std::uint64_t size_of(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

bool pread_all(int fd, std::span<std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

// Checks the header before libelf does.
std::optional<std::string> why_not_ours(int fd, Elf64_Ehdr& header) {
  if (!pread_all(fd, std::as_writable_bytes(std::span{&header, 1}), 0) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "not an ELF file";
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != own_architecture().number) {
    return fmt::format("not a 64-bit {} ELF file (class {}, data {}, machine {})",
                       own_architecture().name, header.e_ident[EI_CLASS], header.e_ident[EI_DATA],
                       header.e_machine);
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return fmt::format("neither an executable nor a library (type {})", header.e_type);
  }
  // Counts that do not fit into the header are in section 0: up to 2^32, and libelf allocates
  // memory for each. Only object files can have so many.
  if (header.e_shnum == 0 && header.e_shoff != 0) {
    return "damaged ELF header: the number of sections is missing";
  }
  if (header.e_phnum == PN_XNUM) {
    return "damaged ELF header: the number of segments is missing";
  }
  return std::nullopt;
}

std::vector<Segment> read_segments(Elf* elf) {
  std::vector<Segment> segments;
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) {
    return segments;
  }
  for (std::size_t i = 0; i < std::min(count, kMostSegments); ++i) {
    GElf_Phdr header{};
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) {
      break;
    }
    segments.push_back({.type = header.p_type,
                        .flags = header.p_flags,
                        .address = base::ElfAddress{header.p_vaddr},
                        .memory_size = header.p_memsz,
                        .offset = header.p_offset,
                        .file_size = header.p_filesz,
                        .align = header.p_align});
  }
  return segments;
}

// The build-id in the notes of a PT_NOTE.
std::optional<std::string> build_id_in(Elf* elf, const Segment& segment) {
  constexpr std::uint64_t kMostNoteBytes = 1U << 20;
  if (segment.file_size > kMostNoteBytes) {
    return std::nullopt;
  }
  Elf_Data* const data =
      elf_getdata_rawchunk(elf, static_cast<std::int64_t>(segment.offset), segment.file_size,
                           segment.align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
  GElf_Nhdr note{};
  std::size_t name = 0;
  std::size_t description = 0;
  std::size_t at = 0;
  while (data != nullptr && (at = gelf_getnote(data, at, &note, &name, &description)) > 0) {
    const auto* const bytes = static_cast<const char*>(data->d_buf);
    if (note.n_type != NT_GNU_BUILD_ID ||
        std::string_view{bytes + name, note.n_namesz} != std::string_view{"GNU\0", 4}) {
      continue;
    }
    return base::hexadecimal(std::as_bytes(std::span{bytes + description, note.n_descsz}));
  }
  return std::nullopt;
}

}  // namespace

std::variant<ElfFile, NotElf> ElfFile::open(base::UniqueFd file) {
  if (auto why = why_not_a_file(file.get())) {
    return NotElf{std::move(*why)};
  }
  Elf64_Ehdr header{};
  if (auto why = why_not_ours(file.get(), header)) {
    return NotElf{std::move(*why)};
  }
  elf_version(EV_CURRENT);
  UniqueElf elf{elf_begin(file.get(), ELF_C_READ, nullptr)};
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) {
    return NotElf{fmt::format("cannot be read as ELF: {}", elf_errmsg(-1))};
  }
  auto segments = read_segments(elf.get());
  if (std::ranges::none_of(segments, &Segment::is_load)) {
    return NotElf{"damaged ELF file: no loadable segment"};
  }
  const auto type = header.e_type == ET_EXEC ? ElfType::kExecutable : ElfType::kDynamic;
  return ElfFile{
      std::make_unique<Impl>(std::move(file), std::move(elf), type, std::move(segments))};
}

ElfFile::Impl::Impl(base::UniqueFd file, UniqueElf elf, ElfType type, std::vector<Segment> segments)
    : file_{std::move(file)},
      elf_{std::move(elf)},
      type_{type},
      segments_{std::move(segments)},
      size_{size_of(fd())} {}

bool ElfFile::Impl::contains(std::uint64_t offset, std::uint64_t size) const {
  return offset <= size_ && size <= size_ - offset;
}

bool ElfFile::Impl::read(std::span<std::byte> bytes, std::uint64_t offset) const {
  bytes_read_ += bytes.size();
  return offset <= kMostFileBytes && pread_all(fd(), bytes, offset);
}

std::uint64_t ElfFile::bytes_read() const { return impl_->bytes_read(); }

ElfFile::ElfFile(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
ElfFile::ElfFile(ElfFile&& other) noexcept = default;
ElfFile& ElfFile::operator=(ElfFile&& other) noexcept = default;
ElfFile::~ElfFile() = default;

ElfType ElfFile::type() const { return impl_->type(); }

const std::vector<Segment>& ElfFile::segments() const { return impl_->segments(); }

base::ElfAddress ElfFile::entry() const {
  GElf_Ehdr header;
  return base::ElfAddress{gelf_getehdr(impl_->elf(), &header) == nullptr ? 0 : header.e_entry};
}

std::optional<std::string> ElfFile::build_id() const {
  for (const Segment& segment : segments()) {
    if (segment.type == PT_NOTE) {
      if (auto found = build_id_in(impl_->elf(), segment)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::vector<std::byte>> ElfFile::read_at(base::ElfAddress address,
                                                       std::size_t size) const {
  if (size > kMostReadBytes) {
    return std::nullopt;
  }
  for (const Segment& segment : segments()) {
    const std::uint64_t skip = address.value() - segment.address.value();
    if (!segment.is_load() || address < segment.address || skip > segment.file_size ||
        size > segment.file_size - skip) {
      continue;
    }
    if (segment.offset > kMostFileBytes || skip > kMostFileBytes ||
        !impl_->contains(segment.offset + skip, size)) {
      return std::nullopt;
    }
    std::vector<std::byte> bytes(size);
    return impl_->read(bytes, segment.offset + skip) ? std::optional{std::move(bytes)}
                                                     : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace pyinject::elf
