#include "recorder/attributes.hpp"

#include <asm/perf_regs.h>

namespace pyinject::recorder {

// Without DS, ES, FS and GS, which the kernel does not sample (arch/x86/kernel/perf_regs.c).
std::uint64_t registers_for_unwinding() {
  const auto bit = [](unsigned number) { return std::uint64_t{1} << number; };
  return (bit(PERF_REG_X86_64_MAX) - 1) & ~(bit(PERF_REG_X86_DS) | bit(PERF_REG_X86_ES) |
                                            bit(PERF_REG_X86_FS) | bit(PERF_REG_X86_GS));
}

}  // namespace pyinject::recorder
