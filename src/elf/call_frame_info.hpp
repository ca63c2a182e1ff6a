// Stepping from a function to its caller by a file's own unwind tables: DWARF 4 section 6.4.
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

// DWARF's numbers of the registers that are followed, System V ABI x86-64 figure 3.36: 0 to 15 are
// the general ones, 16 is the return address.
inline constexpr std::size_t kUnwoundRegisters = 17;
inline constexpr std::size_t kFramePointer = 6;
inline constexpr std::size_t kStackPointer = 7;
inline constexpr std::size_t kReturnAddress = 16;

// A DWARF expression, a part of the table that it comes from; unwind_expression.hpp computes it.
using Expression = std::span<const std::byte>;

// Where the caller's value of a register is.
struct SavedRegister {
  enum class Place {
    kUnchanged,     // still in the register
    kLost,          // nowhere; of the return address: there is no caller
    kAtCfa,         // in memory, OFFSET from the canonical frame address
    kCfaValue,      // the value is that address itself
    kInRegister,    // in the register OFFSET
    kAtExpression,  // in memory, at the EXPRESSION
    kExpression,    // the value is the EXPRESSION's
  };
  Place place = Place::kUnchanged;
  std::int64_t offset = 0;
  Expression expression = {};
};

// What holds at one program counter. The canonical frame address (CFA) is the stack pointer as it
// was before the call instruction.
struct UnwindRow {
  std::optional<std::size_t> cfa_register;  // nullopt: by the expression
  std::int64_t cfa_offset = 0;              // from that register
  Expression cfa_expression = {};
  std::array<SavedRegister, kUnwoundRegisters> registers = {};
  bool signal_frame =
      false;  // the caller was interrupted: its program counter is no return address
};

// The usual case.
struct CallerRule {
  bool frame_from_rbp = false;      // else from the stack pointer
  std::int64_t frame_offset = 0;    // the CFA, from that register
  std::int64_t return_address = 0;  // from the CFA
  // From the CFA; nullopt: the register still holds the caller's.
  std::optional<std::int64_t> saved_rbp;
};

// One entry of the table: a function, or a part of one that the compiler has put elsewhere.
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
  // nullopt: FILE has none, or it is larger than MEMORY, which the tables are taken from.
  [[nodiscard]] static std::optional<CallFrameInfo> of(const ElfFile& file,
                                                       base::Allowance& memory);
  [[nodiscard]] static std::optional<CallFrameInfo> of(const ElfFile& file);

  // nullopt: no entry covers PC, or it makes no sense or takes more than STEPS. Its expressions
  // live as long as this object.
  [[nodiscard]] std::optional<UnwindRow> row_at(base::ElfAddress pc, base::Allowance& steps) const;
  // nullopt: neither, or it needs more than the above.
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
