// An ELF file that a target has mapped. Its bytes are not trusted: no contents crash the reader or
// make it use unbounded memory.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pyinject::elf {

enum class ElfType { kExecutable, kDynamic };  // ET_EXEC; ET_DYN: PIE or library

// A program header, elf(5).
struct Segment {
  std::uint32_t type = 0;   // PT_LOAD, PT_NOTE, ... of <elf.h>
  std::uint32_t flags = 0;  // PF_R | PF_W | PF_X
  base::ElfAddress address;
  std::uint64_t memory_size = 0;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t file_size = 0;
  std::uint64_t align = 0;

  [[nodiscard]] bool is_load() const { return type == 1; }
  [[nodiscard]] bool executable() const { return (flags & 1U) != 0; }
  [[nodiscard]] bool writable() const { return (flags & 2U) != 0; }
};

struct Symbol {
  base::ElfAddress address;
  std::uint64_t size = 0;
  bool operator==(const Symbol&) const = default;
};

struct Section {
  base::ElfAddress address;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  bool in_file = true;  // false: like .bss, only in memory
};

struct NotElf {
  std::string why;
};

using Symbols = std::map<std::string, Symbol, std::less<>>;

class ElfFile {
 public:
  // FILE: a regular file of at most 4 GiB with a 64-bit little-endian x86-64 executable or library.
  // It is read, never mapped: a hostile target may truncate its file at any time, which would cause
  // SIGBUS for a mapping.
  [[nodiscard]] static std::variant<ElfFile, NotElf> open(base::UniqueFd file);

  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&& other) noexcept;
  ~ElfFile();

  [[nodiscard]] ElfType type() const;
  [[nodiscard]] const std::vector<Segment>& segments() const;
  // Where the kernel or the dynamic loader starts to execute it; 0: nowhere.
  [[nodiscard]] base::ElfAddress entry() const;
  // NT_GNU_BUILD_ID in lower-case hexadecimal.
  [[nodiscard]] std::optional<std::string> build_id() const;
  // The defined functions and objects among NAMES, from .dynsym, else from .symtab. For a name with
  // several versions, the first one in the table. Does not contain missing names, symbols after the
  // first 4 million of a table, and symbols not reached before CANCELLATION was stopped.
  [[nodiscard]] Symbols find_symbols(
      std::span<const std::string_view> names,
      const base::Cancellation& cancellation = base::Cancellation::never()) const;
  [[nodiscard]] std::optional<Section> section(std::string_view name) const;
  // SIZE bytes (at most 64 MiB) from the file's part of one PT_LOAD; nullopt: not all of them
  // exist. No relocations are applied.
  [[nodiscard]] std::optional<std::vector<std::byte>> read_at(base::ElfAddress address,
                                                              std::size_t size) const;

  // Bytes read by find_symbols() and read_at() so far.
  [[nodiscard]] std::uint64_t bytes_read() const;

  // For other sources in this directory.
  class Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit ElfFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyinject::elf
