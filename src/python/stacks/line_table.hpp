// A code object's co_linetable: the line of each instruction (Objects/locations.md of CPython's
// InternalDocs, "location table"). Pure: bytes in, numbers out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pyinject::python {

class LineTable {
 public:
  LineTable() = default;
  // Bytes of a table that are worth reading; one of 60,000 lines has 200,000.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

  // TABLE is not trusted: parsing stops at invalid data.
  LineTable(std::span<const std::byte> table, std::uint32_t first_line);

  // The line of the instruction OFFSET bytes after the first one. 0: no line, or no such
  // instruction.
  [[nodiscard]] std::uint32_t line_at(std::uint64_t offset) const;
  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  [[nodiscard]] std::size_t memory() const { return runs_.capacity() * sizeof(Run); }

 private:
  // From BEGIN (bytes) up to the next run.
  struct Run {
    std::uint32_t begin = 0;
    std::uint32_t line = 0;
  };
  void add(std::uint64_t begin, std::int64_t line);

  std::vector<Run> runs_;  // ascending
};

}  // namespace pyinject::python
