// Separates interpreter frames from C code that the program called: between two Python functions
// are the evaluation loop, the trampoline's evaluator and call helpers, which say nothing about the
// program. The rules are those of perf-scripts (docs/perf-scripts.md).
#pragma once

#include "report/profile.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace pyinject::report {

// "_PyEval_EvalFrameDefault", "method_vectorcall_NOARGS.part.0".
[[nodiscard]] bool is_machinery_name(std::string_view name);

// Where a thread was in a sample, seen from its innermost Python function.
enum class Leaf : std::uint8_t { kPython, kNative, kKernel };

class Leaves {
 public:
  explicit Leaves(const Profile& profile);
  // FRAMES: innermost first, indices in Profile::frames; not empty.
  [[nodiscard]] Leaf leaf_of(const std::vector<std::uint32_t>& frames);

 private:
  enum class Known : std::uint8_t { kNot, kYes, kNo };
  [[nodiscard]] bool is_interpreters(std::uint32_t object,
                                     const std::vector<std::uint32_t>& frames) const;
  [[nodiscard]] bool is_machinery(std::uint32_t function);

  const Profile& profile_;
  std::vector<bool> interpreter_files_;  // by object: its name says so
  std::vector<Known> machinery_;         // by function: its name says so
};

}  // namespace pyinject::report
