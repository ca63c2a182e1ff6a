// ELF files with unwind tables that no compiler writes.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace pyinject::test {

// An unwind table of one function, from address 0 on, of SIZE bytes. PROGRAM follows what compilers
// begin with: the CFA is rsp + 8, the return address at CFA - 8.
[[nodiscard]] std::string made_unwind_table(const std::string& program, std::uint32_t size);

// For each register but the stack pointer an expression of as many steps as one may take.
[[nodiscard]] std::string slow_unwind_program();

// Rounds of a program that takes no step further, up to 64 KiB.
[[nodiscard]] std::string long_unwind_program();

// A library with one executable segment that is the whole file, and TABLE as its .eh_frame, whose
// size is said to be SAID; behind TABLE is a hole. Where the table is in the file: kTableAt.
inline constexpr std::uint64_t kTableAt = 0x1000;
[[nodiscard]] base::UniqueFd made_elf(const std::string& table, std::uint64_t said = 0);

}  // namespace pyinject::test
