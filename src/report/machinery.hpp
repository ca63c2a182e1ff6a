// Tells the interpreter's own machinery from the C code that a Python program asked for: between
// two Python functions stand the evaluation loop, the trampoline's evaluator and call helpers,
// which say nothing about the program. The rules are those of perf-scripts (docs/perf-scripts.md).
#pragma once

#include "report/profile.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pyinject::report {

// "_PyEval_EvalFrameDefault", "method_vectorcall_NOARGS.part.0".
[[nodiscard]] bool is_machinery_name(std::string_view name);

// Where a thread was in a sample, seen from its innermost Python function.
enum class Leaf : std::uint8_t { kPython, kNative, kKernel };
// FRAMES: innermost first, indices in Profile::frames; not empty.
[[nodiscard]] Leaf leaf_of(const Profile& profile, const std::vector<std::uint32_t>& frames);

}  // namespace pyinject::report
