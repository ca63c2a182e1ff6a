// A code object's co_linetable: which line each instruction belongs to (Objects/locations.md of
// CPython's InternalDocs, "location table"). Pure: bytes in, numbers out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pyinject::python {

class LineTable {
 public:
  LineTable() = default;
  // TABLE may be anything; what makes no sense in it ends it, and so do more changes of the line
  // than any function of a reasonable size has.
  LineTable(std::span<const std::byte> table, std::uint32_t first_line);

  // Of the instruction OFFSET bytes behind the first one. 0: it has none, or there is none.
  [[nodiscard]] std::uint32_t line_at(std::uint64_t offset) const;
  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  [[nodiscard]] std::size_t memory() const { return runs_.capacity() * sizeof(Run); }

 private:
  // From BEGIN (bytes) up to the next one.
  struct Run {
    std::uint32_t begin = 0;
    std::uint32_t line = 0;
  };
  void add(std::uint64_t begin, std::int64_t line);

  std::vector<Run> runs_;  // ascending
};

}  // namespace pyinject::python
