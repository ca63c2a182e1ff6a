// The lines of functions as compilers tell them debuggers (DWARF 4): perf's srcline. Pure.
#pragma once

#include "pyinject/weave/symbol_image.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace pyinject::weave {

// The contents of the sections of the same names; all empty: no symbol has lines.
struct DebugLines {
  std::vector<std::byte> abbrev;
  std::vector<std::byte> info;
  std::vector<std::byte> line;
  std::vector<std::byte> aranges;
};

// SYMBOLS as ImageSymbol says of them.
[[nodiscard]] DebugLines make_debug_lines(std::span<const ImageSymbol> symbols);

}  // namespace pyinject::weave
