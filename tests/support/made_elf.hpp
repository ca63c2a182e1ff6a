// ELF files with unwind tables that no compiler generates.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace pyinject::test {

// An unwind table of one function at addresses [0, SIZE). PROGRAM follows the rules that compilers
// start with: the CFA is rsp + 8, the return address at CFA - 8.
[[nodiscard]] std::string made_unwind_table(const std::string& program, std::uint32_t size);

// An expression of the maximum number of steps for each register but the stack pointer.
[[nodiscard]] std::string slow_unwind_program();

// A program of up to 64 KiB whose instructions never advance the location.
[[nodiscard]] std::string long_unwind_program();

// A library with one executable segment that covers the whole file, and TABLE as its .eh_frame at
// kTableAt. The section header gives its size as SAID; a hole follows TABLE.
inline constexpr std::uint64_t kTableAt = 0x1000;
[[nodiscard]] base::UniqueFd made_elf(const std::string& table, std::uint64_t said = 0);

}  // namespace pyinject::test
