// What an ELF file asks the dynamic loader for.
#pragma once

#include "elf/elf_file.hpp"

#include <string>
#include <vector>

namespace pyinject::elf {

struct Dynamic {
  std::vector<std::string> needed;  // DT_NEEDED
  std::string search;               // DT_RUNPATH, else DT_RPATH, as it is written; may be empty
};

// Of a file without a dynamic section: empty.
[[nodiscard]] Dynamic read_dynamic(const ElfFile& file);

}  // namespace pyinject::elf
