#include "elf/dynamic.hpp"

#include "elf/elf_impl.hpp"

namespace pyinject::elf {

namespace {

constexpr int kMostEntries = 4096;

std::string text_at(Elf* elf, std::size_t strings, std::uint64_t offset) {
  const char* const text = elf_strptr(elf, strings, offset);
  return text == nullptr ? std::string{} : std::string{text};
}

}  // namespace

Dynamic read_dynamic(const ElfFile& file) {
  Dynamic result;
  Elf* const elf = file.impl().elf();
  Elf_Scn* const section = find_section(elf, ".dynamic");
  Elf_Data* const data = section == nullptr ? nullptr : section_data(section);
  GElf_Shdr header;
  if (data == nullptr || gelf_getshdr(section, &header) == nullptr) {
    return result;
  }
  GElf_Dyn entry;
  std::string old_search;
  for (int i = 0; i < kMostEntries && gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    if (entry.d_tag == DT_NEEDED) {
      result.needed.push_back(text_at(elf, header.sh_link, entry.d_un.d_val));
    } else if (entry.d_tag == DT_RUNPATH) {
      result.search = text_at(elf, header.sh_link, entry.d_un.d_val);
    } else if (entry.d_tag == DT_RPATH) {
      old_search = text_at(elf, header.sh_link, entry.d_un.d_val);
    }
  }
  if (result.search.empty()) {
    result.search = old_search;
  }
  return result;
}

}  // namespace pyinject::elf
