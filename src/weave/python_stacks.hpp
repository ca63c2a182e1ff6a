// The interface between callchains and Python frames: everything that reads the interpreter's
// frames (the low-rate reader; a BPF program) is a StackSource.
#pragma once

#include "sample/stack.hpp"
#include "unwind/unwinder.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pyinject::weave {

// The C functions of a sample, unwound when it was taken.
struct NativeStack {
  std::vector<std::uint64_t> chain{};  // innermost first, like a callchain; empty: unknown
  unwind::EndOfStack end = unwind::EndOfStack::kWhole;
};

// What a callchain shows about the evaluator, the C function that runs Python frames. Its
// activations are numbered from the outermost.
struct StackQuery {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time = 0;           // by the recording's clock
  bool traced = false;              // a sample of a tracepoint or probe
  std::uint64_t program_since = 0;  // when the process started or executed its program
  std::size_t evaluators = 0;       // activations in the callchain
  // Number of activations up to and including the last one that was not called through a
  // trampoline: it runs frames that were entered while the trampoline was off.
  std::size_t plain = 0;
  // The innermost function may have hidden its caller (frame pointers, a function without a frame),
  // which may have been one more plain activation.
  bool one_may_be_hidden = false;
  // The C stack lacks its outer end: there may be more activations outside of those in the
  // callchain.
  bool outer_missing = false;
  // The process switches greenlets: the frames of another time may be those of another greenlet.
  bool greenlets = false;
  // The callchain ends where the C stack of a greenlet does.
  bool in_greenlet = false;
  // Address of the Python frame that activation N runs, or several candidates, as far as the C
  // stack shows it. May be empty.
  std::function<std::vector<std::uint64_t>(std::size_t n)> frames_of = {};
  // The function through whose trampoline activation N was called, by its name in the perf map.
  // Empty string: none, or not in the map. May be empty.
  std::function<std::string(std::size_t n)> trampoline_of = {};
};

class StackSource {
 public:
  virtual ~StackSource() = default;
  StackSource() = default;
  StackSource(const StackSource&) = delete;
  StackSource& operator=(const StackSource&) = delete;

  // The Python stack of that thread at that time; no frames and not whole: unknown. Called once for
  // each sample, in file order.
  [[nodiscard]] virtual sample::Stack at(const StackQuery& query) = 0;
  // The C functions of that thread at that time, which replace those that the kernel has recorded.
  // Without effect on at().
  [[nodiscard]] virtual NativeStack native_at(const StackQuery& /*query*/) { return {}; }
  // nullptr: unknown.
  [[nodiscard]] virtual const sample::Code* name(std::uint32_t pid, std::uint64_t code) const = 0;
  // Calls CALL for all names; LAST_LINE: the highest line of any frame with this code.
  virtual void each_name(
      const std::function<void(const sample::Code& name, std::uint32_t last_line)>& call) const = 0;
  // Whether it has the complete stack of each sample, so that an unknown stack is a miss.
  [[nodiscard]] virtual bool has_every_sample() const = 0;
};

}  // namespace pyinject::weave
