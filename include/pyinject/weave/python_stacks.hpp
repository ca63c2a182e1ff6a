// The seam between callchains and what is known of Python: whoever reads the interpreter's frames
// (the low-rate reader; a BPF program) is a StackSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::weave {

struct PythonFrame {
  std::uint64_t activation = 0;  // the frame's own identity: its address
  std::uint64_t code = 0;        // of its code object, for StackSource::name
  std::uint32_t line = 0;        // 0: not known
  // The outermost of those that share one C activation of the evaluator (the frame before it is an
  // entry frame).
  bool outermost = false;
  bool operator==(const PythonFrame&) const = default;
};

struct CodeName {
  std::string qualname;
  std::string file;
};

// What one callchain says about the evaluator: a C function that runs Python frames.
struct StackQuery {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time = 0;      // of the recording's clock
  std::size_t evaluators = 0;  // its activations in the callchain
  // How many of them, from the outermost on, were not called through a trampoline: they run frames
  // that were entered while it was off.
  std::size_t plain = 0;
  // The innermost function may have hidden its caller (frame pointers, a function without one), and
  // this may have been a further plain activation.
  bool one_may_be_hidden = false;
};

class StackSource {
 public:
  virtual ~StackSource() = default;
  StackSource() = default;
  StackSource(const StackSource&) = delete;
  StackSource& operator=(const StackSource&) = delete;

  // The Python stack of that thread at that time, innermost first, as far as it is known from its
  // outermost frame on; empty: nothing is known.
  [[nodiscard]] virtual std::vector<PythonFrame> at(const StackQuery& query) const = 0;
  // nullptr: not known.
  [[nodiscard]] virtual const CodeName* name(std::uint32_t pid, std::uint64_t code) const = 0;
};

}  // namespace pyinject::weave
