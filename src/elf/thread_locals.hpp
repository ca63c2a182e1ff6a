// The thread-local variables of a library.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"

#include <optional>

namespace pyinject::elf {

// Where the dynamic loader stores the number that it has given FILE's thread-local variables, a
// word in memory (R_X86_64_DTPMOD64, ELF Handling For Thread-Local Storage, 4.1.6). nullopt: FILE
// has none, finds them in another way, or has too many relocations.
[[nodiscard]] std::optional<base::ElfAddress> place_of_thread_locals_number(const ElfFile& file);

}  // namespace pyinject::elf
