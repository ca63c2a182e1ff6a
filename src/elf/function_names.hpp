// Names code by the symbols of its file.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"

#include <span>
#include <string>
#include <vector>

namespace pyinject::elf {

// The names of the functions of FILE that contain ADDRESSES, in the same order; empty: no symbol in
// .symtab, .dynsym and .gnu_debugdata does. Of several names for the same code, the one that is
// best known: global rather than local, with few leading underscores.
[[nodiscard]] std::vector<std::string> function_names(const ElfFile& file,
                                                      std::span<const base::ElfAddress> addresses);

}  // namespace pyinject::elf
