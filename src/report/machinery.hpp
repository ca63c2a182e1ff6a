// Separates interpreter frames from C code that the program called: between two Python functions
// are the evaluation loop, the trampoline's evaluator and call helpers, which say nothing about the
// program. The rules are those of perf-scripts (docs/perf-scripts.md).
#pragma once

#include "pyinject/report/profile.hpp"
#include "sample/use.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::report {

// "_PyEval_EvalFrameDefault", "method_vectorcall_NOARGS.part.0".
[[nodiscard]] bool is_machinery_name(std::string_view name);

// Whether the evaluator calls the C function NAME for byte code, not because Python calls a
// function: "PyNumber_Add", "long_add", "_PyType_Lookup", "dict_subscript".
[[nodiscard]] bool is_byte_code_name(std::string_view name);

// What a thread did in a sample, seen from its innermost Python function: interpreting (the
// evaluator, and what it calls for byte code: arithmetic, look-up of attributes, allocation), a C
// function that Python had called, or the kernel. `why` divides in the same way. kUndecided: one of
// the first two; the interpreter has no names that would tell.
enum class Leaf : std::uint8_t { kPython, kNative, kUndecided, kKernel };

// The files that are the interpreter.
class Interpreters {
 public:
  explicit Interpreters(const Profile& profile);
  // Whether OBJECT is one: by its name, or because one of its functions runs a Python function in
  // FRAMES, indices in Profile::frames, innermost first.
  [[nodiscard]] bool have(std::uint32_t object, const std::vector<std::uint32_t>& frames) const;

 private:
  const Profile& profile_;
  std::vector<bool> files_;  // by object: its name says so
};

// What a function is to somebody who looks for the program in a stack, not for its interpreter.
enum class Part : std::uint8_t {
  kProgram,      // a Python function, a C function of its own, the kernel, a mark of a gap
  kInterpreter,  // the evaluator and what it calls functions with; a mark of a state
  kByteCode,     // a C function for byte code, unless Python calls it: "dict_subscript"
  kNameless,     // a function of an interpreter without names: any of these
  kGreenlet,     // the mark at a greenlet's root: what is outside of it does not run
};
[[nodiscard]] std::vector<Part> parts_of(const Profile& profile);  // by function

class Leaves {
 public:
  explicit Leaves(const Profile& profile);
  // FRAMES: innermost first, indices in Profile::frames; not empty. If DOES is unknown, the names
  // of C functions tell.
  [[nodiscard]] Leaf leaf_of(const std::vector<std::uint32_t>& frames, sample::Does does);
  // The same as `why` divides: kCollector or kImport if FRAMES have a function of the garbage
  // collector or of the import system. kUnknown: undecided.
  [[nodiscard]] sample::Use use_of(const std::vector<std::uint32_t>& frames, sample::Does does);

 private:
  enum class Known : std::uint8_t { kNot, kYes, kNo };
  [[nodiscard]] bool is_machinery(std::uint32_t function);
  [[nodiscard]] bool is_evaluator(const std::vector<std::uint32_t>& frames, std::size_t frame,
                                  std::size_t python);
  [[nodiscard]] Leaf leaf_by_names(const std::vector<std::uint32_t>& frames, std::size_t python);

  const Profile& profile_;
  Interpreters interpreters_;
  std::vector<Known> machinery_;  // by function: its name says so
};

// What threads did in the samples of a profile; each stack is looked at once.
class Uses {
 public:
  explicit Uses(const Profile& profile) : profile_{profile}, leaves_{profile} {}
  // The name of Leaves::use_of; "undecided"; empty: a wait, or nothing but marks.
  [[nodiscard]] std::string_view of(const Sample& sample);

 private:
  const Profile& profile_;
  Leaves leaves_;
  std::map<std::pair<std::uint32_t, sample::Does>, std::string_view> known_;  // by stack
};

}  // namespace pyinject::report
