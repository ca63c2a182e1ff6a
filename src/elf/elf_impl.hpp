// The libelf handle behind ElfFile: only for the sources in this directory.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <gelf.h>
#include <libelf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace pyinject::elf {

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using UniqueElf = std::unique_ptr<Elf, EndElf>;

// More than any table, string table or note of a real interpreter.
inline constexpr std::uint64_t kMostSectionBytes = std::uint64_t{256} << 20;

class ElfFile::Impl {
 public:
  Impl(base::UniqueFd file, UniqueElf elf, ElfType type, std::vector<Segment> segments);

  [[nodiscard]] Elf* elf() const { return elf_.get(); }
  [[nodiscard]] int fd() const { return file_.get(); }
  [[nodiscard]] ElfType type() const { return type_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }

  // Whether the file had these bytes when it was opened. Its headers may state any size: ask before
  // allocating memory for it.
  [[nodiscard]] bool contains(std::uint64_t offset, std::uint64_t size) const;
  // Reads BYTES at OFFSET of the file; false: not all of them exist.
  [[nodiscard]] bool read(std::span<std::byte> bytes, std::uint64_t offset) const;
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  base::UniqueFd file_;  // before elf_: libelf reads from it until elf_end
  UniqueElf elf_;
  ElfType type_;
  std::vector<Segment> segments_;
  std::uint64_t size_;
  mutable std::uint64_t bytes_read_ = 0;
};

// The contents of a section; nullptr: too large, not in the file, or damaged.
[[nodiscard]] Elf_Data* section_data(Elf_Scn* section);
// The first section with this name; nullptr: none.
[[nodiscard]] Elf_Scn* find_section(Elf* elf, std::string_view name);

}  // namespace pyinject::elf
