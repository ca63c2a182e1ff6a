// The seam between callchains and what is known of Python: whoever reads the interpreter's frames
// (the low-rate reader; a BPF program) is a StackSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pyinject::weave {

struct PythonFrame {
  std::uint64_t activation = 0;  // the frame's own identity: its address
  std::uint64_t code = 0;        // its code object, by a number that no other one has
  std::uint32_t line = 0;        // 0: not known
  // The outermost of those that share one C activation of the evaluator (the frame before it is an
  // entry frame).
  bool outermost = false;
  bool operator==(const PythonFrame&) const = default;
};

struct CodeName {
  std::string qualname;
  std::string file;
  std::uint32_t first_line = 0;  // 0: not known
};

// What its thread has to do with the interpreter's lock.
enum class GilState : std::uint8_t { kUnknown, kNone, kHeld, kWaitedFor };

struct PythonStack {
  // Innermost first, as far as they are known from the outermost one on.
  std::vector<PythonFrame> frames{};
  // These are all that there were at that instant; what follows is known of such stacks only.
  bool whole = false;
  bool truncated = false;  // all, but for some at the root
  GilState gil = GilState::kUnknown;
  std::string task{};  // the name of the asyncio task that ran; empty: none
};

// What one callchain says about the evaluator: a C function that runs Python frames. Its
// activations are counted from the outermost on.
struct StackQuery {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time = 0;      // of the recording's clock
  std::size_t evaluators = 0;  // its activations in the callchain
  // So many, from the first on, end with the last one that was not called through a trampoline: it
  // runs frames that were entered while that was off.
  std::size_t plain = 0;
  // The innermost function may have hidden its caller (frame pointers, a function without one), and
  // this may have been one plain activation more.
  bool one_may_be_hidden = false;
  // The C stack has no outer end: more activations may be there, outside of those in the callchain.
  bool outer_missing = false;
  // The address of the Python frame that activation N runs, or several of which it is one, as far
  // as the C stack shows it. May be empty.
  std::function<std::vector<std::uint64_t>(std::size_t n)> frames_of = {};
  // The function through whose trampoline activation N was called, as the perf map names it. Empty:
  // it was not, or the map does not tell. May be empty.
  std::function<std::string(std::size_t n)> trampoline_of = {};
};

class StackSource {
 public:
  virtual ~StackSource() = default;
  StackSource() = default;
  StackSource(const StackSource&) = delete;
  StackSource& operator=(const StackSource&) = delete;

  // The Python stack of that thread at that time; without frames and not whole: nothing is known.
  // Asked once for each sample, in the order of the file.
  [[nodiscard]] virtual PythonStack at(const StackQuery& query) = 0;
  // nullptr: not known.
  [[nodiscard]] virtual const CodeName* name(std::uint32_t pid, std::uint64_t code) const = 0;
  // All names; LAST_LINE: the highest that any frame of this code is at.
  virtual void each_name(
      const std::function<void(const CodeName& name, std::uint32_t last_line)>& call) const = 0;
  // Whether it has the whole stack of each sample: one that it does not know is a miss.
  [[nodiscard]] virtual bool has_every_sample() const = 0;
};

}  // namespace pyinject::weave
