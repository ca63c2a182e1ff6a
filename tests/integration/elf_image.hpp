// A copy of an ELF file in memory, which a test can corrupt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pyinject::test {

class ElfImage {
 public:
  // PATH: a trusted ELF file with section headers. Throws base::Error if it cannot be read.
  explicit ElfImage(const std::string& path);

  // The bytes of function NAME.
  [[nodiscard]] std::span<char> code(std::string_view name);
  // Adds DELTA to the value of symbol NAME, in each symbol table.
  void move_symbol(std::string_view name, std::int64_t delta);
  // Renames it to NOW, which must have the same length, in each string table. Without NOW: to an
  // unused name.
  void rename_symbol(const std::string& name, std::string now = "");
  // Extends the last writable segment to the end of its page.
  void fill_last_page();
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  template <typename Visit>
  void for_each_symbol(std::string_view name, Visit visit);

  std::string bytes_;
};

}  // namespace pyinject::test
