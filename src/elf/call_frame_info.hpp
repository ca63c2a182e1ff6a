// Unwinds from a function to its caller with a file's unwind tables: DWARF 4 section 6.4.
#pragma once

#include "base/budget.hpp"
#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace pyinject::elf {

// DWARF numbers of the tracked registers, System V ABI x86-64 figure 3.36: 0 to 15 are the general
// registers, 16 is the return address.
inline constexpr std::size_t kUnwoundRegisters = 17;
inline constexpr std::size_t kFramePointer = 6;
inline constexpr std::size_t kStackPointer = 7;
inline constexpr std::size_t kReturnAddress = 16;

// A DWARF expression, pointing into its table; evaluated by unwind_expression.hpp.
using Expression = std::span<const std::byte>;

// Location of the caller's value of a register.
struct SavedRegister {
  enum class Place {
    kUnchanged,     // still in the register
    kLost,          // unavailable; for the return address: there is no caller
    kAtCfa,         // in memory, OFFSET from the canonical frame address
    kCfaValue,      // the value is the canonical frame address itself
    kInRegister,    // in the register with number OFFSET
    kAtExpression,  // in memory, at the address given by EXPRESSION
    kExpression,    // the value is that of EXPRESSION
  };
  Place place = Place::kUnchanged;
  std::int64_t offset = 0;
  Expression expression = {};
};

// The unwind rules for a program counter. The canonical frame address (CFA) is the value of the
// stack pointer before the call instruction.
struct UnwindRow {
  std::optional<std::size_t> cfa_register;  // nullopt: use the expression
  std::int64_t cfa_offset = 0;              // relative to that register
  Expression cfa_expression = {};
  std::array<SavedRegister, kUnwoundRegisters> registers = {};
  bool signal_frame =
      false;  // the caller was interrupted: its program counter is no return address
};

// The common case.
struct CallerRule {
  bool from_frame_pointer = false;  // false: from the stack pointer
  std::int64_t frame_offset = 0;    // of the CFA, relative to that register
  std::int64_t return_address = 0;  // relative to the CFA
  // Relative to the CFA; nullopt: the register still holds the caller's value.
  std::optional<std::int64_t> saved_frame_pointer;
};

// An entry of the table: a function, or a part of one that the compiler placed elsewhere.
struct CodeExtent {
  base::ElfAddress begin;
  std::uint64_t size = 0;
  [[nodiscard]] bool contains(base::ElfAddress address) const {
    return address >= begin && address.value() - begin.value() < size;
  }
  bool operator==(const CodeExtent&) const = default;
};

class CallFrameInfo {
 public:
  // nullopt: FILE has no tables, or they exceed MEMORY, which they are charged to.
  [[nodiscard]] static std::optional<CallFrameInfo> of(const ElfFile& file,
                                                       base::Allowance& memory);
  [[nodiscard]] static std::optional<CallFrameInfo> of(const ElfFile& file);

  // nullopt: no entry covers PC, or the entry is invalid or takes more than STEPS. Its expressions
  // are valid as long as this object.
  [[nodiscard]] std::optional<UnwindRow> row_at(base::ElfAddress pc, base::Allowance& steps) const;
  // nullopt: no row, or the row needs more than a CallerRule.
  [[nodiscard]] std::optional<CallerRule> rule_at(base::ElfAddress pc) const;

  // The entry that covers PC.
  [[nodiscard]] std::optional<CodeExtent> extent_at(base::ElfAddress pc) const;

  CallFrameInfo(CallFrameInfo&& other) noexcept;
  CallFrameInfo& operator=(CallFrameInfo&& other) noexcept;
  ~CallFrameInfo();

 private:
  class Impl;
  explicit CallFrameInfo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::elf
