// What an ELF file requests from the dynamic loader.
#pragma once

#include "elf/elf_file.hpp"

#include <string>
#include <vector>

namespace pyinject::elf {

struct Dynamic {
  std::vector<std::string> needed;  // DT_NEEDED
  std::string search;               // DT_RUNPATH, else DT_RPATH, unexpanded; may be empty
};

// Empty for a file without a dynamic section.
[[nodiscard]] Dynamic read_dynamic(const ElfFile& file);

}  // namespace pyinject::elf
