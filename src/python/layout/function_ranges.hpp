// Locates functions of a target's interpreter.
#pragma once

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

// The function NAME, then the parts and functions that it jumps to: a part that only returns, as
// BOLT splits off, looks like a function that is called last. Without large ones.
[[nodiscard]] std::vector<CodeRange> parts_reached(const Target& target, std::string_view name);

}  // namespace pyinject::python
