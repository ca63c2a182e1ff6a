// Locates the machine code that writes CPython's perf map.
#pragma once

#include "pyinject/python/evaluator.hpp"
#include "pyinject/python/target.hpp"

#include <vector>

namespace pyinject::python {

// The functions of CPython's API (3.12 and later) that open the perf map and write each entry. They
// are exported, so stripped files have their symbols, too. Only CPython's trampoline calls them
// from within the interpreter's file. Empty: not found. Reads the file.
[[nodiscard]] std::vector<CodeRange> map_writer_ranges(const Target& target);

}  // namespace pyinject::python
