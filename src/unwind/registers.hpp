// The registers of a sampled thread; converts perf's numbering into that of unwind tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pyinject::unwind {

// Indexed by DWARF register number (elf/call_frame_info.hpp); the last one is the program counter.
inline constexpr std::size_t kRegisters = 17;

struct Registers {
  std::array<std::uint64_t, kRegisters> values = {};
  std::uint32_t known = 0;  // bit N: values[N] is valid

  [[nodiscard]] bool knows(std::size_t number) const {
    return number < kRegisters && (known >> number & 1U) != 0;
  }
  [[nodiscard]] std::optional<std::uint64_t> get(std::uint64_t number) const {
    return number < kRegisters && knows(static_cast<std::size_t>(number))
               ? std::optional{values[number]}
               : std::nullopt;
  }
  void set(std::size_t number, std::uint64_t value) {
    values[number] = value;
    known |= 1U << number;
  }
  void forget(std::size_t number) { known &= ~(1U << number); }

  [[nodiscard]] std::uint64_t pc() const { return values[kRegisters - 1]; }
  [[nodiscard]] std::uint64_t sp() const;
  [[nodiscard]] std::uint64_t fp() const;
};

// Converts PERF_SAMPLE_REGS_USER: VALUES contains the registers in MASK, ordered by perf's numbers
// (the kernel's arch/x86/include/uapi/asm/perf_regs.h). nullopt: stack pointer or program counter
// is missing.
[[nodiscard]] std::optional<Registers> from_perf(std::span<const std::uint64_t> values,
                                                 std::uint64_t mask);

// Those of a thread of which only these two are known.
[[nodiscard]] Registers from_place(std::uint64_t stack_pointer, std::uint64_t program_counter);

// Bit N: register N is callee-saved (System V ABI x86-64, 3.2.1).
[[nodiscard]] std::uint32_t preserved_by_calls();

}  // namespace pyinject::unwind
