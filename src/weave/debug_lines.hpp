// Line tables of functions in the format of compilers (DWARF 4), for perf's srcline. Pure.
#pragma once

#include "pyinject/weave/symbol_image.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pyinject::weave {

// ImageSymbol: of each line.
inline constexpr std::uint8_t kBytesOfLine = 4;

// The contents of the sections with these names; all empty if no symbol has lines.
struct DebugLines {
  std::vector<std::byte> abbrev;
  std::vector<std::byte> info;
  std::vector<std::byte> line;
  std::vector<std::byte> aranges;
};

// SYMBOLS: lines as documented in ImageSymbol.
[[nodiscard]] DebugLines make_debug_lines(std::span<const ImageSymbol> symbols);

}  // namespace pyinject::weave
