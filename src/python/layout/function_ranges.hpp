// Locates functions of a target's interpreter.
#pragma once

#include "elf/call_frame_info.hpp"
#include "elf/elf_file.hpp"
#include "pyinject/python/evaluator.hpp"
#include "pyinject/python/target.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace pyinject::python {

// The parts of the functions NAMES, those of one function ascending: each function itself and the
// parts that the compiler moved elsewhere. Without those that the interpreter's file has no symbol
// for; empty if the file cannot be read.
[[nodiscard]] std::vector<CodeRange> function_ranges(const Target& target,
                                                     std::span<const std::string_view> names);

// The same in the interpreter's FILE.
[[nodiscard]] std::vector<elf::CodeExtent> function_extents(
    const elf::ElfFile& file, std::span<const std::string_view> names);

// Where EXTENT of the interpreter's file is in TARGET.
[[nodiscard]] CodeRange placed(const elf::CodeExtent& extent, const Target& target);

// The function NAME, then the parts and functions that it jumps to: a part that only returns, as
// BOLT splits off, looks like a function that is called last. Without large ones.
[[nodiscard]] std::vector<CodeRange> parts_reached(const Target& target, std::string_view name);

}  // namespace pyinject::python
