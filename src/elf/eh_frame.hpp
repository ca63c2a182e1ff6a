// The unwind tables in a file's .eh_frame: functions and how to find their callers. Linux Standard
// Base 5.0 Core 10.6, DWARF 4 section 6.4. Pure: bytes in, values out.
//
// Does not use libdw: a few bytes of a hostile table make it allocate gigabytes (register numbers
// up to 2^27, copied for each remembered state), and without section headers it reads the whole
// file into memory.
#pragma once

#include "base/budget.hpp"
#include "elf/call_frame_info.hpp"
#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::elf {

// Pointer encoding: DW_EH_PE_*.
using PointerEncoding = std::uint8_t;

// What the functions of a compilation unit share (a CIE).
struct CommonInformation {
  std::uint64_t code_alignment = 1;
  std::uint64_t data_alignment = 1;  // two's complement
  PointerEncoding encoding = 0;
  bool augmented = false;  // its functions have augmentation data with an explicit size
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

  // nullopt: FILE has no such table, or it exceeds MEMORY, which it is charged to.
  [[nodiscard]] static std::optional<EhFrame> of(const ElfFile& file, base::Allowance& memory);

  // ADDRESS: that of BYTES. Invalid data ends the table.
  EhFrame(std::vector<std::byte> bytes, base::ElfAddress address,
          std::size_t most_functions = kMostFunctions);
  EhFrame(EhFrame&&) = default;
  EhFrame& operator=(EhFrame&&) = default;
  EhFrame(const EhFrame&) = delete;
  EhFrame& operator=(const EhFrame&) = delete;
  ~EhFrame() = default;

  // In ascending order.
  [[nodiscard]] const std::vector<UnwoundFunction>& functions() const { return functions_; }
  [[nodiscard]] const CommonInformation& common_of(const UnwoundFunction& function) const {
    return common_[function.common];
  }
  // The function that contains PC, or nullptr.
  [[nodiscard]] const UnwoundFunction* function_at(base::ElfAddress pc) const;
  // nullopt: no function, or its program is invalid or takes more than STEPS.
  [[nodiscard]] std::optional<UnwindRow> row_at(base::ElfAddress pc, base::Allowance& steps) const;

 private:
  // Without the bytes of the table.
  [[nodiscard]] std::uint64_t memory() const;

  std::vector<std::byte> bytes_;  // the programs point into it; moves preserve its address
  std::vector<CommonInformation> common_;
  std::vector<UnwoundFunction> functions_;
};

// The row for PC, which is in FUNCTION: runs COMMON's program, then the function's own.
[[nodiscard]] std::optional<UnwindRow> run_unwind_programs(const CommonInformation& common,
                                                           const UnwoundFunction& function,
                                                           base::ElfAddress pc,
                                                           base::Allowance& steps);

// Calls EACH with all rows of FUNCTION in ascending order of the addresses at which they begin.
// False: the programs are invalid or take more than STEPS; the last row may be missing.
using EachRow = std::function<void(base::ElfAddress begin, const UnwindRow& row)>;
[[nodiscard]] bool each_row(const CommonInformation& common, const UnwoundFunction& function,
                            base::Allowance& steps, const EachRow& each);

}  // namespace pyinject::elf
