// The part of ElfFile that needs section headers.
#include "elf/elf_impl.hpp"
#include "pyinject/elf/elf_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include <elf.h>

namespace pyinject::elf {

namespace {

// The text at OFFSET of a string table; empty when it is not terminated in there.
std::string_view string_at(const Elf_Data& strings, std::uint64_t offset) {
  if (strings.d_buf == nullptr || offset >= strings.d_size) {
    return {};
  }
  const auto* const begin = static_cast<const char*>(strings.d_buf) + offset;
  const void* const end = std::memchr(begin, 0, strings.d_size - offset);
  if (end == nullptr) {
    return {};
  }
  return {begin, static_cast<const char*>(end)};
}

bool is_function_or_object(const GElf_Sym& symbol) {
  const auto type = GELF_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF &&
         (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE);
}

// Moves those of WANTED that the table SECTION defines to FOUND.
void find_in_table(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                   std::set<std::string_view>& wanted, Symbols& found) {
  Elf_Data* const strings = section_data(elf_getscn(elf, header.sh_link));
  Elf_Data* const table = section_data(section);
  if (strings == nullptr || table == nullptr) {
    return;
  }
  const std::size_t count = table->d_size / sizeof(Elf64_Sym);
  for (std::size_t i = 0; i < count && !wanted.empty(); ++i) {
    GElf_Sym symbol{};
    if (gelf_getsym(table, static_cast<int>(i), &symbol) == nullptr) {
      return;
    }
    if (!is_function_or_object(symbol)) {
      continue;
    }
    const auto name = wanted.find(string_at(*strings, symbol.st_name));
    if (name != wanted.end()) {
      found.emplace(*name, Symbol{base::ElfAddress{symbol.st_value}, symbol.st_size});
      wanted.erase(name);
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
  const Elf_Data* const strings = section_data(elf_getscn(elf, names));
  if (strings == nullptr) {
    return nullptr;
  }
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) != nullptr && string_at(*strings, header.sh_name) == name) {
      return section;
    }
  }
  return nullptr;
}

Symbols ElfFile::find_symbols(std::span<const std::string_view> names) const {
  std::set<std::string_view> wanted{names.begin(), names.end()};
  Symbols found;
  for (const std::uint32_t type : std::array<std::uint32_t, 2>{SHT_DYNSYM, SHT_SYMTAB}) {
    Elf* const elf = impl_->elf();
    for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
         section = elf_nextscn(elf, section)) {
      GElf_Shdr header{};
      if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) {
        find_in_table(elf, section, header, wanted, found);
        break;  // an executable has one of each; thousands could share the same bytes
      }
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
