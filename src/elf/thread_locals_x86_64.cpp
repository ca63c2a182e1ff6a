#include "elf/elf_impl.hpp"
#include "elf/thread_locals.hpp"

namespace pyinject::elf {

std::optional<base::ElfAddress> place_of_thread_locals_number(const ElfFile& file) {
  constexpr int kMostRelocations = 1 << 16;
  Elf_Scn* const section = find_section(file.impl().elf(), ".rela.dyn");
  Elf_Data* const data = section == nullptr ? nullptr : section_data(section);
  GElf_Rela relocation;
  for (int i = 0;
       data != nullptr && i < kMostRelocations && gelf_getrela(data, i, &relocation) != nullptr;
       ++i) {
    // Without a symbol: of the file's own variables.
    if (GELF_R_TYPE(relocation.r_info) == R_X86_64_DTPMOD64 && GELF_R_SYM(relocation.r_info) == 0) {
      return base::ElfAddress{relocation.r_offset};
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::elf
