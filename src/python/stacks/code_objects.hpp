// The code objects that have been met in a target: what they are called, and their lines. Each is
// read once; whether the same one is still there is looked at in one go for many.
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

// CPython's own code, pushed below __init__ when a class is called: no Python function.
[[nodiscard]] inline bool is_init_cleanup(const CodeNames& names) {
  return names.qualname == "__init__" && names.file == "__init__";
}

struct CodeObject {
  CodeNames names;
  LineTable lines;
  std::uint64_t serial = 0;      // no two objects have the same one
  std::uint64_t round = 0;       // in which it was last looked at
  std::uint64_t code_bytes = 0;  // of its instructions
  // Its constant part. It holds pointers and, in co_version, a number that CPython gives once: no
  // other object that comes to lie in the same place has the same bytes.
  std::vector<std::byte> head;
};

class CodeObjects {
 public:
  // CODE_TYPE: where the target has PyCode_Type.
  CodeObjects(const memory::MemoryReader& memory, const StackLayout& layout,
              base::RemoteAddress code_type);

  // A new round. Forgets all when they have become too many.
  void begin_round();
  // Which of CODES are the same as they were is known from now on, in one read.
  void recognise(std::span<const base::RemoteAddress> codes);
  // Learns what CODES (each once, please) are now. False: one of them is no code object.
  [[nodiscard]] bool look_at(std::span<const base::RemoteAddress> codes);
  // As it was looked at in this round; nullptr: it was none, or was not.
  [[nodiscard]] const CodeObject* find(base::RemoteAddress code) const;
  // The line of the instruction at ADDRESS of it.
  [[nodiscard]] std::uint32_t line(const CodeObject& object, base::RemoteAddress code,
                                   base::RemoteAddress address) const;

 private:
  [[nodiscard]] std::optional<CodeObject> read(base::RemoteAddress code,
                                               std::span<const std::byte> head) const;
  // The part of a head that does not change: what is before the type is the reference count.
  [[nodiscard]] std::span<const std::byte> constant(std::span<const std::byte> head) const;
  [[nodiscard]] LineTable read_lines(base::RemoteAddress table, std::uint32_t first_line) const;

  const memory::MemoryReader& memory_;
  StackLayout layout_;
  base::RemoteAddress code_type_;
  std::size_t head_size_ = 0;
  std::unordered_map<std::uint64_t, CodeObject> known_;  // by address
  std::size_t bytes_ = 0;                                // that they take
  std::uint64_t last_serial_ = 0;
  std::uint64_t round_ = 0;
  std::vector<std::byte> heads_;  // kept to save allocations
  std::vector<memory::ReadPiece> pieces_;
};

}  // namespace pyinject::python
