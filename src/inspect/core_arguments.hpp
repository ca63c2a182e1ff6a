// The arguments of a process in a core file, of which the notes have only the first 79 bytes.
#pragma once

#include "memory/process_memory.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pyinject::inspect {

// From where the kernel has put them on the first thread's stack: fs/binfmt_elf.c:
// create_elf_tables(). AUXV: NT_AUXV, pairs of words. Empty: MEMORY does not have them. At most
// 1 MiB.
[[nodiscard]] std::vector<std::string> core_arguments(const memory::MemoryReader& memory,
                                                      std::span<const std::uint64_t> auxv);

}  // namespace pyinject::inspect
