#include "pyinject/weave/symbol_image.hpp"

#include "elf/architecture.hpp"
#include "weave/debug_lines.hpp"
#include "weave/sha1.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include <elf.h>

namespace pyinject::weave {

namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t kPage = 0x1000;
// Section numbers must be below SHN_LORESERVE; arenas of 64 KiB never get near this limit.
constexpr std::size_t kMostRanges = 0xf000;
constexpr auto kSectionNames =
    "\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0.shstrtab\0.debug_abbrev\0.debug_info\0"
    ".debug_line\0.debug_aranges\0"sv;

struct BuildIdNote {
  Elf64_Nhdr header{.n_namesz = 4, .n_descsz = sizeof(Sha1Digest), .n_type = NT_GNU_BUILD_ID};
  char name[4] = {'G', 'N', 'U', '\0'};  // NOLINT(modernize-avoid-c-arrays): a file's layout
  Sha1Digest id{};
};

std::uint32_t name_of(std::string_view section) {
  return static_cast<std::uint32_t>(kSectionNames.find(section));
}

// Sorts, and joins overlapping and adjacent ranges.
std::vector<AddressRange> joined(std::span<const AddressRange> ranges) {
  std::vector<AddressRange> sorted{ranges.begin(), ranges.end()};
  std::erase_if(sorted, [](const AddressRange& range) { return range.end <= range.begin; });
  std::ranges::sort(sorted, {}, &AddressRange::begin);
  std::vector<AddressRange> result;
  for (const AddressRange& range : sorted) {
    if (!result.empty() && (range.begin <= result.back().end || result.size() == kMostRanges)) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

// Debug sections, only if there are lines.
struct DebugSection {
  std::string_view name;
  std::vector<std::byte> bytes;
};

std::vector<DebugSection> debug_sections(std::span<const ImageSymbol> symbols) {
  auto lines = make_debug_lines(symbols);
  if (lines.line.empty()) {
    return {};
  }
  return {{.name = ".debug_abbrev", .bytes = std::move(lines.abbrev)},
          {.name = ".debug_info", .bytes = std::move(lines.info)},
          {.name = ".debug_line", .bytes = std::move(lines.line)},
          {.name = ".debug_aranges", .bytes = std::move(lines.aranges)}};
}

struct Tables {
  std::vector<Elf64_Sym> symbols{1};  // symbol 0 is reserved
  std::string names{'\0'};
};

// Section 2 + N is range N.
constexpr std::size_t kFirstRange = 2;

Tables make_tables(std::span<const ImageSymbol> symbols, std::span<const AddressRange> ranges) {
  Tables tables;
  tables.symbols.reserve(symbols.size() + 1);
  for (const ImageSymbol& symbol : symbols) {
    const auto behind = std::ranges::upper_bound(ranges, symbol.address, {}, &AddressRange::begin);
    if (behind == ranges.begin() || symbol.address >= std::prev(behind)->end) {
      continue;
    }
    const std::string_view name{symbol.name.c_str()};
    if (tables.names.size() + name.size() >= std::numeric_limits<std::uint32_t>::max()) {
      break;
    }
    const auto range = static_cast<std::size_t>(std::prev(behind) - ranges.begin());
    tables.symbols.push_back({.st_name = static_cast<std::uint32_t>(tables.names.size()),
                              .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                              .st_other = STV_DEFAULT,
                              .st_shndx = static_cast<std::uint16_t>(kFirstRange + range),
                              .st_value = symbol.address,
                              .st_size = symbol.size});
    tables.names.append(name);
    tables.names.push_back('\0');
  }
  return tables;
}

// Offsets of the parts of the file.
struct Layout {
  std::uint64_t segments = 0;
  std::uint64_t note = 0;
  std::uint64_t symbols = 0;
  std::uint64_t names = 0;
  std::uint64_t section_names = 0;
  std::vector<std::uint64_t> debug{};
  std::uint64_t sections = 0;
  std::uint64_t end = 0;
};

Layout lay_out(std::size_t segment_count, const Tables& tables, std::span<const DebugSection> debug,
               std::size_t section_count) {
  Layout layout;
  const auto place = [&](std::uint64_t size) {
    const std::uint64_t at = (layout.end + 7) / 8 * 8;
    layout.end = at + size;
    return at;
  };
  place(sizeof(Elf64_Ehdr));
  layout.segments = place(segment_count * sizeof(Elf64_Phdr));
  layout.note = place(sizeof(BuildIdNote));
  layout.symbols = place(tables.symbols.size() * sizeof(Elf64_Sym));
  layout.names = place(tables.names.size());
  layout.section_names = place(kSectionNames.size());
  for (const auto& section : debug) {
    layout.debug.push_back(place(section.bytes.size()));
  }
  layout.sections = place(section_count * sizeof(Elf64_Shdr));
  return layout;
}

Elf64_Ehdr header_of(const Layout& layout, std::size_t range_count, std::size_t section_count) {
  Elf64_Ehdr header{};
  std::ranges::copy(std::string_view{ELFMAG}, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = elf::own_architecture().number;
  header.e_version = EV_CURRENT;
  header.e_phoff = layout.segments;
  header.e_shoff = layout.sections;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<std::uint16_t>(range_count + 1);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(section_count);
  header.e_shstrndx = static_cast<std::uint16_t>(kFirstRange + range_count + 2);
  return header;
}

std::vector<Elf64_Phdr> segments_of(const Layout& layout, std::span<const AddressRange> ranges) {
  std::vector<Elf64_Phdr> segments;
  segments.reserve(ranges.size() + 1);
  segments.push_back({.p_type = PT_NOTE,
                      .p_flags = PF_R,
                      .p_offset = layout.note,
                      .p_vaddr = layout.note,
                      .p_paddr = layout.note,
                      .p_filesz = sizeof(BuildIdNote),
                      .p_memsz = sizeof(BuildIdNote),
                      .p_align = 4});
  for (const AddressRange& range : ranges) {
    const std::uint64_t size = range.end - range.begin;
    segments.push_back({.p_type = PT_LOAD,
                        .p_flags = PF_R | PF_X,
                        .p_offset = range.begin,
                        .p_vaddr = range.begin,
                        .p_paddr = range.begin,
                        .p_filesz = 0,
                        .p_memsz = size,
                        .p_align = kPage});
  }
  return segments;
}

std::vector<Elf64_Shdr> sections_of(const Layout& layout, const Tables& tables,
                                    std::span<const DebugSection> debug,
                                    std::span<const AddressRange> ranges) {
  const auto strings_at = static_cast<std::uint32_t>(kFirstRange + ranges.size() + 1);
  std::vector<Elf64_Shdr> sections{1};
  sections.reserve(strings_at + 2 + debug.size());
  sections.push_back({.sh_name = name_of(".note.gnu.build-id"),
                      .sh_type = SHT_NOTE,
                      .sh_flags = SHF_ALLOC,
                      .sh_addr = layout.note,
                      .sh_offset = layout.note,
                      .sh_size = sizeof(BuildIdNote),
                      .sh_link = 0,
                      .sh_info = 0,
                      .sh_addralign = 4,
                      .sh_entsize = 0});
  for (const AddressRange& range : ranges) {
    sections.push_back({.sh_name = name_of(".text"),
                        .sh_type = SHT_NOBITS,
                        .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                        .sh_addr = range.begin,
                        .sh_offset = range.begin,
                        .sh_size = range.end - range.begin,
                        .sh_link = 0,
                        .sh_info = 0,
                        .sh_addralign = 1,
                        .sh_entsize = 0});
  }
  sections.push_back({.sh_name = name_of(".symtab"),
                      .sh_type = SHT_SYMTAB,
                      .sh_flags = 0,
                      .sh_addr = 0,
                      .sh_offset = layout.symbols,
                      .sh_size = tables.symbols.size() * sizeof(Elf64_Sym),
                      .sh_link = strings_at,
                      .sh_info = static_cast<std::uint32_t>(tables.symbols.size()),
                      .sh_addralign = 8,
                      .sh_entsize = sizeof(Elf64_Sym)});
  const auto add = [&](std::string_view name, std::uint32_t type, std::uint64_t offset,
                       std::uint64_t size) {
    sections.push_back({.sh_name = name_of(name),
                        .sh_type = type,
                        .sh_flags = 0,
                        .sh_addr = 0,
                        .sh_offset = offset,
                        .sh_size = size,
                        .sh_link = 0,
                        .sh_info = 0,
                        .sh_addralign = 1,
                        .sh_entsize = 0});
  };
  add(".strtab", SHT_STRTAB, layout.names, tables.names.size());
  add(".shstrtab", SHT_STRTAB, layout.section_names, kSectionNames.size());
  for (std::size_t i = 0; i < debug.size(); ++i) {
    add(debug[i].name, SHT_PROGBITS, layout.debug[i], debug[i].bytes.size());
  }
  return sections;
}

template <typename Values>
void put(std::vector<std::byte>& bytes, std::uint64_t offset, const Values& values) {
  std::ranges::copy(std::as_bytes(std::span{values}),
                    bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

}  // namespace

SymbolImage make_symbol_image(std::span<const ImageSymbol> symbols,
                              std::span<const AddressRange> ranges) {
  const auto areas = joined(ranges);
  const Tables tables = make_tables(symbols, areas);
  const auto debug = debug_sections(symbols);
  const std::size_t section_count = kFirstRange + areas.size() + 3 + debug.size();
  const Layout layout = lay_out(areas.size() + 1, tables, debug, section_count);
  SymbolImage image;
  image.bytes.resize(layout.end);
  BuildIdNote note;
  put(image.bytes, 0, std::array{header_of(layout, areas.size(), section_count)});
  put(image.bytes, layout.segments, segments_of(layout, areas));
  put(image.bytes, layout.note, std::array{note});
  put(image.bytes, layout.symbols, tables.symbols);
  put(image.bytes, layout.names, tables.names);
  put(image.bytes, layout.section_names, kSectionNames);
  for (std::size_t i = 0; i < debug.size(); ++i) {
    put(image.bytes, layout.debug[i], debug[i].bytes);
  }
  put(image.bytes, layout.sections, sections_of(layout, tables, debug, areas));
  note.id = sha1(image.bytes);
  put(image.bytes, layout.note, std::array{note});
  image.build_id.assign(note.id.begin(), note.id.end());
  return image;
}

std::vector<std::byte> proven_build_id(std::span<const std::byte> image) {
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  const auto read = [&](std::uint64_t offset, auto& value) {
    const bool inside = offset <= image.size() && image.size() - offset >= sizeof value;
    if (inside) {
      std::memcpy(&value, image.data() + offset, sizeof value);
    }
    return inside;
  };
  BuildIdNote note;
  // make_symbol_image() makes the note the first segment.
  if (!read(0, header) || !read(header.e_phoff, segment) || segment.p_type != PT_NOTE ||
      !read(segment.p_offset, note)) {
    return {};
  }
  const auto id = std::exchange(note.id, {});
  std::vector<std::byte> bytes{image.begin(), image.end()};
  put(bytes, segment.p_offset, std::array{note});
  if (sha1(bytes) != id) {
    return {};
  }
  return {id.begin(), id.end()};
}

}  // namespace pyinject::weave
