// Reads the stacks of a running target: the implementation of StackReader once the layout is known.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/layout/process_image.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/layout/thread_numbers.hpp"
#include "python/stacks/code_objects.hpp"
#include "python/stacks/frame_walk.hpp"
#include "python/stacks/page_cache.hpp"
#include "python/stacks/thread_list.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::python {

// Nothing is stopped while it is read. A stack is accepted if
//   its frames are the same calls in two consecutive reads, with their code objects checked in
//   between; or
//   all memory that it was read from is the same as when it was last accepted, and so are its code
//   objects, checked afterwards.
// The second rule makes waiting threads cheap, and most threads wait. If the inner functions of a
// thread return too fast for the first rule, the outer frames are accepted that were the same calls
// twice.
class LiveStacks {
 public:
  // RUNTIME, CODE_TYPE: addresses of _PyRuntime and PyCode_Type.
  LiveStacks(std::unique_ptr<memory::MemoryReader> memory, ThreadNumbers numbers,
             const RuntimeLayout& layout, base::RemoteAddress runtime,
             base::RemoteAddress code_type);

  // The memory does not change, and parts of it may be missing: what can be read of a stack is
  // returned, and time does not matter.
  void set_unchanging() {
    patience_ = kPatienceForUnchanged;
    gaps_ = Gaps::kCut;
  }

  [[nodiscard]] std::vector<ThreadStack> read();
  [[nodiscard]] std::vector<ThreadStack> read(std::span<const base::Tid> tids);
  [[nodiscard]] std::optional<CodeNames> names(base::RemoteAddress code);
  [[nodiscard]] std::optional<CodeNames> names(const PythonFrame& frame) const;
  [[nodiscard]] const StackReader::Losses& losses() const { return losses_; }
  void forget_losses() { losses_ = {}; }
  [[nodiscard]] const std::vector<base::Tid>& unread() const { return unread_; }
  [[nodiscard]] std::optional<base::Tid> main_thread() const { return threads_.main_thread(); }

 private:
  enum class Outcome { kRead, kOuterRead, kGone, kChanged, kUnreadable };
  // The states of one thread: it has one of each interpreter that it has worked in, and 3.13 and
  // later may have another one of the main interpreter (docs/cpython-notes.md, "Sub-interpreters").
  using States = std::span<KnownThread>;

  void begin();
  void update();
  [[nodiscard]] std::vector<States> by_thread();
  [[nodiscard]] States states_of(base::Tid tid);
  // Removes the unchanged threads from THREADS and returns their stacks.
  [[nodiscard]] std::vector<ThreadStack> take_unchanged(std::vector<States>& threads);
  [[nodiscard]] std::vector<ThreadStack> read_threads(std::vector<States> threads);
  // False: one of STATES has been freed, or now belongs to another thread.
  [[nodiscard]] bool read_thread(States states, std::vector<ThreadStack>& stacks);
  [[nodiscard]] Outcome read_state(KnownThread& state, RawStack& stack);
  // Ends STACK before the first frame whose code object is missing.
  void cut_at_gap(std::optional<RawStack>& stack);
  void remember(KnownThread& state);

  std::unique_ptr<memory::MemoryReader> memory_;
  RuntimeLayout layout_;
  // Limit per process, which may have 8192 stacks of 4096 frames each, all changing. A thread takes
  // 20 us.
  std::chrono::milliseconds patience_{250};
  Gaps gaps_ = Gaps::kRefuse;
  PageCache pages_;
  CodeObjects codes_;
  ThreadList threads_;
  StackReader::Losses losses_;
  std::vector<base::Tid> unread_;
  std::size_t remembered_ = 0;  // bytes used by the snapshots
};

// The stacks of TARGET in IMAGE, which must live longer. Takes the layout from TARGET's debug
// offsets (3.13 and later) or from a table (3.12), and tests it. A string says what does not fit.
[[nodiscard]] std::variant<std::unique_ptr<LiveStacks>, std::string> open_stacks(
    const Target& target, const ProcessImage& image);

}  // namespace pyinject::python
