#include "elf/call_frame_info.hpp"
#include "unwind/registers.hpp"

#include <asm/perf_regs.h>

namespace pyinject::unwind {

static_assert(kRegisters == elf::kUnwoundRegisters);

std::uint64_t Registers::sp() const { return values[elf::kStackPointer]; }
std::uint64_t Registers::fp() const { return values[elf::kFramePointer]; }

std::optional<Registers> from_perf(std::span<const std::uint64_t> values, std::uint64_t mask) {
  // Indexed by DWARF number.
  constexpr std::array<unsigned, kRegisters> kPerfNumber{
      PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,  PERF_REG_X86_SI,
      PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,  PERF_REG_X86_R9,
      PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
      PERF_REG_X86_R15, PERF_REG_X86_IP};
  Registers registers;
  for (std::size_t i = 0; i < kRegisters; ++i) {
    if ((mask >> kPerfNumber[i] & 1U) != 0 && kPerfNumber[i] < values.size()) {
      registers.set(i, values[kPerfNumber[i]]);
    }
  }
  return registers.knows(elf::kStackPointer) && registers.knows(elf::kReturnAddress)
             ? std::optional{registers}
             : std::nullopt;
}

Registers from_place(std::uint64_t stack_pointer, std::uint64_t program_counter) {
  Registers registers;
  registers.set(elf::kStackPointer, stack_pointer);
  registers.set(elf::kReturnAddress, program_counter);
  return registers;
}

std::uint32_t preserved_by_calls() {
  // rbx, rbp, rsp, r12 to r15
  return 1U << 3U | 1U << 6U | 1U << 7U | 1U << 12U | 1U << 13U | 1U << 14U | 1U << 15U;
}

}  // namespace pyinject::unwind
