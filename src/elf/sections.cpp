// The part of ElfFile that needs section headers.
#include "elf/elf_file.hpp"
#include "elf/elf_impl.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include <elf.h>

namespace pyinject::elf {

namespace {

// No name that is looked for is longer. Where no end is near there is none of them: to look for it
// would cost the length of the table for each symbol.
constexpr std::size_t kMostNameBytes = 256;
// Debug builds of the largest programs have a million symbols, in 100 MiB of names.
constexpr std::uint64_t kMostSymbols = 4'000'000;
constexpr std::uint64_t kMostNamesBytes = std::uint64_t{128} << 20U;
// Of the names of sections, and of a table of strings that several threads may have in memory.
constexpr std::uint64_t kOrdinaryBytes = std::uint64_t{16} << 20U;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

// The text at OFFSET of a string table; empty when it has no end within the longest name.
std::string_view string_at(std::span<const char> strings, std::uint64_t offset) {
  if (offset >= strings.size()) {
    return {};
  }
  const auto rest = strings.subspan(offset);
  const auto most = std::min(rest.size(), kMostNameBytes);
  const void* const end = std::memchr(rest.data(), 0, most);
  if (end == nullptr) {
    return {};
  }
  return {rest.data(), static_cast<const char*>(end)};
}

bool is_function_or_object(const Elf64_Sym& symbol) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF &&
         (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE);
}

bool can_be_read(const GElf_Shdr& header, std::uint64_t most) {
  return header.sh_type != SHT_NOBITS && header.sh_size <= most &&
         (header.sh_flags & SHF_COMPRESSED) == 0;
}

// Empty: it cannot be read, or CANCELLATION was stopped.
std::vector<char> read_strings(const ElfFile::Impl& file, const GElf_Shdr& header,
                               const base::Cancellation& cancellation) {
  std::vector<char> strings;
  if (!can_be_read(header, kMostNamesBytes)) {
    return strings;
  }
  strings.resize(header.sh_size);
  for (std::size_t done = 0; done < strings.size(); done += kPieceBytes) {
    const auto piece =
        std::span{strings}.subspan(done, std::min(kPieceBytes, strings.size() - done));
    if (cancellation.stopped() ||
        !file.read(std::as_writable_bytes(piece), header.sh_offset + done)) {
      return {};
    }
  }
  return strings;
}

// Moves those of WANTED that the table with HEADER, whose names are in NAMES, defines to FOUND.
void find_in_table(const ElfFile::Impl& file, const GElf_Shdr& header, const GElf_Shdr& names,
                   std::set<std::string_view>& wanted, Symbols& found,
                   const base::Cancellation& cancellation) {
  // A process can map many files that are as large as they may be.
  static std::mutex one_large_table;
  std::unique_lock<std::mutex> lock;
  if (names.sh_size > kOrdinaryBytes) {
    lock = std::unique_lock{one_large_table};
  }
  const auto strings = read_strings(file, names, cancellation);
  if (strings.empty() || header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_COMPRESSED) != 0) {
    return;
  }
  const auto count = std::min(header.sh_size / sizeof(Elf64_Sym), kMostSymbols);
  std::vector<Elf64_Sym> symbols;
  for (std::uint64_t done = 0; done < count && !wanted.empty(); done += symbols.size()) {
    symbols.resize(std::min<std::uint64_t>(count - done, kPieceBytes / sizeof(Elf64_Sym)));
    if (cancellation.stopped() || !file.read(std::as_writable_bytes(std::span{symbols}),
                                             header.sh_offset + done * sizeof(Elf64_Sym))) {
      return;
    }
    for (const auto& symbol : symbols) {
      if (!is_function_or_object(symbol)) {
        continue;
      }
      const auto name = wanted.find(string_at(strings, symbol.st_name));
      if (name != wanted.end()) {
        found.emplace(*name, Symbol{base::ElfAddress{symbol.st_value}, symbol.st_size});
        wanted.erase(name);
      }
    }
  }
}

}  // namespace

Elf_Data* section_data(Elf_Scn* section) {
  GElf_Shdr header{};
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr ||
      header.sh_type == SHT_NOBITS || header.sh_size > kMostSectionBytes ||
      (header.sh_flags & SHF_COMPRESSED) != 0) {
    return nullptr;
  }
  return elf_getdata(section, nullptr);
}

Elf_Scn* find_section(Elf* elf, std::string_view name) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) {
    return nullptr;
  }
  Elf_Scn* const table = elf_getscn(elf, names);
  GElf_Shdr described{};
  if (table == nullptr || gelf_getshdr(table, &described) == nullptr ||
      !can_be_read(described, kOrdinaryBytes)) {
    return nullptr;
  }
  const Elf_Data* const data = section_data(table);
  if (data == nullptr || data->d_buf == nullptr) {
    return nullptr;
  }
  const std::span strings{static_cast<const char*>(data->d_buf), data->d_size};
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) != nullptr && string_at(strings, header.sh_name) == name) {
      return section;
    }
  }
  return nullptr;
}

Symbols ElfFile::find_symbols(std::span<const std::string_view> names,
                              const base::Cancellation& cancellation) const {
  std::set<std::string_view> wanted{names.begin(), names.end()};
  Symbols found;
  Elf* const elf = impl_->elf();
  for (const std::uint32_t type : std::array<std::uint32_t, 2>{SHT_DYNSYM, SHT_SYMTAB}) {
    for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
         section = elf_nextscn(elf, section)) {
      GElf_Shdr header{};
      GElf_Shdr strings{};
      if (gelf_getshdr(section, &header) == nullptr || header.sh_type != type) {
        continue;
      }
      Elf_Scn* const linked = elf_getscn(elf, header.sh_link);
      if (linked != nullptr && gelf_getshdr(linked, &strings) != nullptr) {
        find_in_table(*impl_, header, strings, wanted, found, cancellation);
      }
      break;  // an executable has one of each; thousands could share the same bytes
    }
  }
  return found;
}

std::optional<Section> ElfFile::section(std::string_view name) const {
  GElf_Shdr header{};
  Elf_Scn* const found = find_section(impl_->elf(), name);
  if (found == nullptr || gelf_getshdr(found, &header) == nullptr) {
    return std::nullopt;
  }
  return Section{.address = base::ElfAddress{header.sh_addr},
                 .size = header.sh_size,
                 .offset = header.sh_offset,
                 .in_file = header.sh_type != SHT_NOBITS};
}

}  // namespace pyinject::elf
