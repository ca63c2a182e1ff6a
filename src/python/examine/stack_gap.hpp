// Unused memory at the top of a process's first stack.
//
// exec puts the texts of the arguments and the environment at the top of the stack. Below them, the
// kernel leaves up to 8191 random bytes unused (arch_align_stack() in arch/x86/kernel/process.c,
// called by create_elf_tables() in fs/binfmt_elf.c, Linux 2.6.12 to 6.18; none without address
// space randomization), and then puts the platform's name (AT_PLATFORM), random bytes (AT_RANDOM)
// and the vectors of pointers. No pointer to the gap exists: stack frames are below the vectors,
// and programs that change their title write from the first argument on.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/examine/mailbox.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pyinject::python {

// What the kernel stored at exec.
struct FirstStack {
  base::RemoteAddress random;     // AT_RANDOM
  base::RemoteAddress platform;   // AT_PLATFORM
  base::RemoteAddress vectors;    // argc (procfs::Stat::stack_begin)
  base::RemoteAddress arguments;  // text of the first argument (procfs::Stat::arguments_begin)
};

// AUXV: contents of /proc/PID/auxv. nullopt: an entry is missing.
[[nodiscard]] std::optional<FirstStack> parse_first_stack(std::string_view auxv,
                                                          base::RemoteAddress vectors,
                                                          base::RemoteAddress arguments);

// nullopt: the stack is not as the kernel made it.
[[nodiscard]] std::optional<UnusedMemory> stack_gap(const memory::MemoryReader& memory,
                                                    const std::vector<procfs::Mapping>& maps,
                                                    const FirstStack& stack);

}  // namespace pyinject::python
