// A code object, from copies of its parts made by a BPF program.
#pragma once

#include "pyinject/python/stack_reader.hpp"
#include "python/stacks/line_table.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace pyinject::python {

// The characters of a str: 1 (Latin-1), 2 or 4 bytes each.
struct TextUnits {
  std::span<const std::byte> bytes;
  std::size_t width = 1;
};
// In UTF-8; invalid characters (a lone surrogate) become U+FFFD.
[[nodiscard]] std::string to_utf8(const TextUnits& units);

class CodeDescription {
 public:
  // LINES: co_linetable. No input is trusted.
  CodeDescription(const TextUnits& qualname, const TextUnits& file,
                  std::span<const std::byte> lines, std::int32_t first_line,
                  std::uint32_t byte_code);

  [[nodiscard]] const CodeNames& names() const { return names_; }
  // The line of the instruction OFFSET bytes after the start of the code object; 0: none.
  [[nodiscard]] std::uint32_t line_at(std::uint64_t offset) const;
  // Bytes used by its line table.
  [[nodiscard]] std::size_t memory() const { return lines_.memory(); }
  // CPython's own code object, below __init__ when a class is called: no Python function.
  [[nodiscard]] bool is_init_cleanup() const;

 private:
  CodeNames names_;
  LineTable lines_;
  std::uint32_t byte_code_ = 0;
};

}  // namespace pyinject::python
