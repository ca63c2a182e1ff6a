// The symbols that some distributions leave in stripped files: ".gnu_debugdata" (MiniDebugInfo of
// Fedora, RHEL, openSUSE), an ELF file with .symtab alone, compressed by xz. gdb, "MiniDebugInfo".
#pragma once

#include "elf/elf_file.hpp"

#include <optional>

namespace pyinject::elf {

// That file; nullopt: FILE has none, or it is damaged or larger than 32 MiB.
[[nodiscard]] std::optional<ElfFile> embedded_symbols(const ElfFile& file);

}  // namespace pyinject::elf
