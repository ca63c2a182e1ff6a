// The part of ElfFile that needs section headers.
#include "elf/elf_file.hpp"
#include "elf/elf_impl.hpp"
#include "elf/embedded_symbols.hpp"
#include "elf/function_names.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include <elf.h>

namespace pyinject::elf {

namespace {

// Longer than any name that is searched for. A symbol without an end nearby is not one of them: a
// search for its end would take the length of the table for each symbol.
constexpr std::size_t kMostNameBytes = 256;
// Debug builds of the largest programs have a million symbols with 100 MiB of names.
constexpr std::uint64_t kMostSymbols = 4'000'000;
constexpr std::uint64_t kMostNamesBytes = std::uint64_t{128} << 20U;
// Limit for section names, and for a string table that several threads may have in memory at once.
constexpr std::uint64_t kOrdinaryBytes = std::uint64_t{16} << 20U;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

// The string at OFFSET of a string table; empty if it exceeds the longest name.
std::string_view string_at(std::span<const char> strings, std::uint64_t offset,
                           std::size_t longest = kMostNameBytes) {
  if (offset >= strings.size()) {
    return {};
  }
  const auto rest = strings.subspan(offset);
  const auto most = std::min(rest.size(), longest);
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

// Empty: unreadable, or CANCELLATION was stopped.
std::vector<char> read_strings(const ElfFile::Impl& file, const GElf_Shdr& header,
                               const base::Cancellation& cancellation) {
  std::vector<char> strings;
  if (!can_be_read(header, kMostNamesBytes) || !file.contains(header.sh_offset, header.sh_size)) {
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

struct SymbolTable {
  GElf_Shdr symbols{};
  GElf_Shdr strings{};
};

// The first table of TYPE: an executable has only one of each; thousands could share the same
// bytes.
std::optional<SymbolTable> symbol_table(Elf* elf, std::uint32_t type) {
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    SymbolTable tables;
    if (gelf_getshdr(section, &tables.symbols) == nullptr || tables.symbols.sh_type != type) {
      continue;
    }
    Elf_Scn* const linked = elf_getscn(elf, tables.symbols.sh_link);
    return linked != nullptr && gelf_getshdr(linked, &tables.strings) != nullptr
               ? std::optional{tables}
               : std::nullopt;
  }
  return std::nullopt;
}

// Moves the names in WANTED that are defined by the table with HEADER and string table NAMES to
// FOUND.
void find_in_table(const ElfFile::Impl& file, const GElf_Shdr& header, const GElf_Shdr& names,
                   std::set<std::string_view>& wanted, Symbols& found,
                   const base::Cancellation& cancellation) {
  // A process can map many files of the maximum size.
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

// C++ names are long.
constexpr std::size_t kMostFunctionNameBytes = 4096;
// Symbols of a damaged table may all contain all addresses.
constexpr std::uint64_t kMostMatches = 10'000'000;

// A function that contains an address.
struct Match {
  std::string_view name;
  std::uint64_t size = 0;
  bool local = false;

  [[nodiscard]] std::size_t underscores() const {
    return std::min(name.find_first_not_of('_'), name.size());
  }
  [[nodiscard]] bool better_than(const Match& other) const {
    return std::tuple{size, local, underscores(), name} <
           std::tuple{other.size, other.local, other.underscores(), other.name};
  }
};

// Sets NAMES, one for each of WANTED, which is ascending, if they are empty and the table with
// HEADER and string table STRINGS has a function there.
void name_by_table(const ElfFile::Impl& file, const GElf_Shdr& header, const GElf_Shdr& strings,
                   std::span<const base::ElfAddress> wanted, std::span<std::string> names) {
  const auto text = read_strings(file, strings, base::Cancellation::never());
  if (text.empty() || header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_COMPRESSED) != 0) {
    return;
  }
  std::vector<Match> best(wanted.size());
  const auto count = std::min(header.sh_size / sizeof(Elf64_Sym), kMostSymbols);
  std::vector<Elf64_Sym> symbols;
  std::uint64_t matches = 0;
  for (std::uint64_t done = 0; done < count && matches < kMostMatches; done += symbols.size()) {
    symbols.resize(std::min<std::uint64_t>(count - done, kPieceBytes / sizeof(Elf64_Sym)));
    if (!file.read(std::as_writable_bytes(std::span{symbols}),
                   header.sh_offset + done * sizeof(Elf64_Sym))) {
      break;
    }
    for (const auto& symbol : symbols) {
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) {
        continue;
      }
      auto at = std::ranges::lower_bound(wanted, base::ElfAddress{symbol.st_value});
      for (; at != wanted.end() && at->value() - symbol.st_value < symbol.st_size; ++at) {
        const Match match{.name = string_at(text, symbol.st_name, kMostFunctionNameBytes),
                          .size = symbol.st_size,
                          .local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL};
        auto& known = best[static_cast<std::size_t>(at - wanted.begin())];
        if (!match.name.empty() && (known.name.empty() || match.better_than(known))) {
          known = match;
        }
        ++matches;
      }
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (names[i].empty()) {
      names[i] = best[i].name;
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
    if (const auto tables = symbol_table(elf, type)) {
      find_in_table(*impl_, tables->symbols, tables->strings, wanted, found, cancellation);
    }
  }
  return found;
}

std::vector<std::string> function_names(const ElfFile& file,
                                        std::span<const base::ElfAddress> addresses) {
  std::vector<base::ElfAddress> wanted{addresses.begin(), addresses.end()};
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<std::string> names(wanted.size());
  const auto name_by = [&](const ElfFile& symbols) {
    for (const std::uint32_t type : std::array<std::uint32_t, 2>{SHT_SYMTAB, SHT_DYNSYM}) {
      if (const auto tables = symbol_table(symbols.impl().elf(), type)) {
        name_by_table(symbols.impl(), tables->symbols, tables->strings, wanted, names);
      }
    }
  };
  name_by(file);
  if (std::ranges::find(names, "") != names.end()) {
    if (const auto embedded = embedded_symbols(file)) {
      name_by(*embedded);
    }
  }
  std::vector<std::string> result;
  result.reserve(addresses.size());
  for (const auto address : addresses) {
    const auto at = std::ranges::lower_bound(wanted, address) - wanted.begin();
    result.push_back(names[static_cast<std::size_t>(at)]);
  }
  return result;
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
