// The unwind tables that a file carries in .eh_frame: which function is where, and how its caller
// is found. Linux Standard Base 5.0 Core 10.6, DWARF 4 section 6.4. Pure: bytes in, values out.
//
// Not by libdw: a few bytes of a hostile table make it allocate gigabytes (register numbers up to
// 2^27, copied for each remembered state), and it reads the whole file into memory where there are
// no section headers.
#pragma once

#include "base/budget.hpp"
#include "elf/call_frame_info.hpp"
#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::elf {

// How pointers are written: DW_EH_PE_*.
using PointerEncoding = std::uint8_t;

// What the functions of one compilation have in common.
struct CommonInformation {
  std::uint64_t code_alignment = 1;
  std::uint64_t data_alignment = 1;  // two's complement
  PointerEncoding encoding = 0;
  bool augmented = false;  // its functions have augmentation data of a stated size
  bool signal_frame = false;
  std::span<const std::byte> program;
};

struct UnwoundFunction {
  base::ElfAddress begin;
  std::uint64_t size = 0;
  std::size_t common = 0;  // its CommonInformation
  std::span<const std::byte> program;

  [[nodiscard]] bool contains(base::ElfAddress address) const {
    return address >= begin && address.value() - begin.value() < size;
  }
};

class EhFrame {
 public:
  static constexpr std::size_t kMostFunctions = 1'000'000;

  // nullopt: FILE has none, or it is larger than MEMORY, which the table is taken from.
  [[nodiscard]] static std::optional<EhFrame> of(const ElfFile& file, base::Allowance& memory);

  // BYTES lie at ADDRESS. What makes no sense in them ends the table there.
  EhFrame(std::vector<std::byte> bytes, base::ElfAddress address,
          std::size_t most_functions = kMostFunctions);
  EhFrame(EhFrame&&) = default;
  EhFrame& operator=(EhFrame&&) = default;
  EhFrame(const EhFrame&) = delete;
  EhFrame& operator=(const EhFrame&) = delete;
  ~EhFrame() = default;

  // In ascending order.
  [[nodiscard]] const std::vector<UnwoundFunction>& functions() const { return functions_; }
  // The one that contains PC, or nullptr.
  [[nodiscard]] const UnwoundFunction* function_at(base::ElfAddress pc) const;
  // nullopt: no function is there, or its program makes no sense or takes more than STEPS.
  [[nodiscard]] std::optional<UnwindRow> row_at(base::ElfAddress pc, base::Allowance& steps) const;

 private:
  // Without the bytes of the table.
  [[nodiscard]] std::uint64_t memory() const;

  std::vector<std::byte> bytes_;  // the programs are parts of it; a move leaves it where it is
  std::vector<CommonInformation> common_;
  std::vector<UnwoundFunction> functions_;
};

// The row for PC of the FUNCTION that contains it: COMMON's program, then the function's own.
[[nodiscard]] std::optional<UnwindRow> run_unwind_programs(const CommonInformation& common,
                                                           const UnwoundFunction& function,
                                                           base::ElfAddress pc,
                                                           base::Allowance& steps);

}  // namespace pyinject::elf
