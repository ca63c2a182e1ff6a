// A small ELF file with the symbols of one process, so that they survive its exit, the reuse of its
// pid, and a move to another machine. docs/perf-notes.md describes how perf reads it.
//
// For example:
//   const weave::ImageSymbol symbol{.address = 0x1000, .size = 16, .name = "py::f:a.py"};
//   const weave::AddressRange range{.begin = 0x1000, .end = 0x2000};
//   const auto image = weave::make_symbol_image({&symbol, 1}, {&range, 1});
#pragma once

#include "pyinject/version.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pyinject::weave {

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last byte
  bool operator==(const AddressRange&) const = default;
};

struct ImageSymbol {
  std::uint64_t address = 0;  // in the process
  std::uint64_t size = 0;     // 0: up to the next symbol
  std::string name;           // up to its first NUL
  // Source position: 8 bytes of FIRST_LINE, then 4 for each line from FIRST_LINE up to LAST_LINE,
  // which also covers the rest. FIRST_LINE 0: unknown.
  std::string file{};  // up to its first NUL
  std::uint32_t first_line = 0;
  std::uint32_t last_line = 0;
};

struct SymbolImage {
  std::vector<std::byte> bytes;
  std::vector<std::byte> build_id;  // 20 bytes, a hash of the whole image
};

// An ELF64 x86-64 library without code. File offsets in it are the real addresses of the process:
// with an MMAP2 record {start = pgoff = RANGE's begin, len = its size} perf's way from an address
// to a symbol is the identity. The same input gives the same bytes.
//
// SYMBOLS outside of all RANGES, and those beyond 4 GiB of names, are dropped; of several at one
// address perf uses the largest. perf 6.1 demangles names that begin with _Z.
[[nodiscard]] SymbolImage make_symbol_image(std::span<const ImageSymbol> symbols,
                                            std::span<const AddressRange> ranges);

// The build-id in IMAGE; empty if it is not the hash of IMAGE, or IMAGE is something else. Such an
// image can have the build-id of no other file.
[[nodiscard]] std::vector<std::byte> proven_build_id(std::span<const std::byte> image);

}  // namespace pyinject::weave
