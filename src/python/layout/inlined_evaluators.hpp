// Copies of CPython's evaluator in other functions.
#pragma once

#include "elf/call_frame_info.hpp"
#include "elf/elf_file.hpp"

#include <span>
#include <vector>

namespace pyinject::python {

// In tail-call builds, _PyEval_EvalFrameDefault only sets up the entry frame and calls the function
// of the first instruction, through a table. So it is short, and with link-time optimization
// compilers copy it into its callers (seen: clang 19 with ThinLTO, CPython 3.14.7). Returns those
// calls outside of EVALUATOR, ascending: each from its last byte to the byte that it returns to,
// so that it contains the program counter of a calling frame. Empty for other builds.
[[nodiscard]] std::vector<elf::CodeExtent> inlined_evaluators(
    const elf::ElfFile& file, std::span<const elf::CodeExtent> evaluator);

}  // namespace pyinject::python
