// A cache of a target's code objects: names and lines. Each is read once; many are checked for
// changes in a single read.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/layout/stack_layout.hpp"
#include "python/stacks/line_table.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace pyinject::python {

// CPython's own code object, below __init__ when a class is called: no Python function.
[[nodiscard]] inline bool is_init_cleanup(const CodeNames& names) {
  return names.qualname == "__init__" && names.file == "__init__";
}

struct CodeObject {
  CodeNames names;
  LineTable lines;
  std::uint64_t serial = 0;      // unique
  std::uint64_t round = 0;       // of the latest check
  std::uint64_t code_bytes = 0;  // of its instructions
  // Its constant part. It holds pointers and, in co_version, a number that CPython never reuses:
  // another object at the same address has different bytes.
  std::vector<std::byte> head;
};

class CodeObjects {
 public:
  // CODE_TYPE: address of PyCode_Type in the target.
  CodeObjects(const memory::MemoryReader& memory, const StackLayout& layout,
              base::RemoteAddress code_type);

  // Starts a new round. Drops everything if there are too many code objects.
  void begin_round();
  // Drops everything but the names that this round has found. Interpreters do the same in the same
  // order: in two that exist one after the other, different code objects may have the same address
  // and constant part.
  void forget();
  // Checks in one read which of CODES are unchanged.
  void recognise(std::span<const base::RemoteAddress> codes);
  // Reads what CODES (without duplicates) are now. False: one of them is no code object.
  [[nodiscard]] bool look_at(std::span<const base::RemoteAddress> codes);
  // As checked in this round; nullptr: no code object, or not checked.
  [[nodiscard]] const CodeObject* find(base::RemoteAddress code) const;
  // Of the object that this round has found at CODE with SERIAL, even if there is another one now;
  // nullptr: unknown.
  [[nodiscard]] const CodeNames* names(base::RemoteAddress code, std::uint64_t serial) const;
  // The line of the instruction at ADDRESS in OBJECT, which is at CODE.
  [[nodiscard]] std::uint32_t line(const CodeObject& object, base::RemoteAddress code,
                                   base::RemoteAddress address) const;

 private:
  // Keeps the names of OBJECT, which leaves KNOWN_, until the round ends.
  void replace(CodeObject& object);
  [[nodiscard]] std::optional<CodeObject> read(base::RemoteAddress code,
                                               std::span<const std::byte> head) const;
  // The part of a head that does not change: everything from the type on, after the reference
  // count.
  [[nodiscard]] std::span<const std::byte> constant(std::span<const std::byte> head) const;
  [[nodiscard]] LineTable read_lines(base::RemoteAddress table, std::uint32_t first_line) const;

  const memory::MemoryReader& memory_;
  StackLayout layout_;
  base::RemoteAddress code_type_;
  std::size_t head_size_ = 0;
  std::unordered_map<std::uint64_t, CodeObject> known_;    // by address
  std::unordered_map<std::uint64_t, CodeNames> replaced_;  // in this round, by serial
  std::size_t bytes_ = 0;                                  // memory used by both
  std::uint64_t last_serial_ = 0;
  std::uint64_t round_ = 0;
  std::vector<std::byte> heads_;  // reused to save allocations
  std::vector<memory::ReadPiece> pieces_;
};

}  // namespace pyinject::python
