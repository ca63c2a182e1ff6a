// Stepping from a function to its caller by a file's own .eh_frame.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "pyinject/elf/elf_file.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace pyinject::elf {

// Where things are at one program counter. The canonical frame address (CFA) is the stack pointer
// as it was before the call instruction.
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
  // nullopt: FILE has none.
  [[nodiscard]] static std::optional<CallFrameInfo> of(const ElfFile& file);

  // nullopt: no entry covers PC, or it needs more than the above (a DWARF expression).
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
