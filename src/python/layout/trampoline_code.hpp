// The code that CPython copies for each Python function (Python/asm_trampoline.S).
#pragma once

#include <cstddef>
#include <span>

namespace pyinject::python {

// Whether CODE, the bytes from _Py_trampoline_func_start to _Py_trampoline_func_end, is one of the
// two forms of CPython's assembly, each with or without endbr64: that of 3.12 and 3.13.0 to
// 3.13.5, and the later one, which keeps a frame pointer. Tools that rewrite executables, such as
// BOLT, can change the code or move one of its ends.
[[nodiscard]] bool is_trampoline_code(std::span<const std::byte> code);

}  // namespace pyinject::python
