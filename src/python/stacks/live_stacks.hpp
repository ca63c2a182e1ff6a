// The stacks of a target that runs on meanwhile: what StackReader does, once the layout is known.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/stacks/code_objects.hpp"
#include "python/stacks/frame_walk.hpp"
#include "python/stacks/page_cache.hpp"
#include "python/stacks/thread_list.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::python {

// Nothing stands still while it is read. A stack is believed when
//   its frames are the same calls twice, one read after the other, and their code objects have been
//   looked at between; or
//   all that it was read from has the same content as when it was last believed, and its code
//   objects, looked at afterwards, are the same, too.
// The latter makes threads that wait cheap, which most do. Of a thread whose inner functions return
// too fast for the former, the outer frames are believed that were the same calls twice.
class LiveStacks {
 public:
  // MEMORY is PROCESS's. RUNTIME, CODE_TYPE: where it has _PyRuntime and PyCode_Type.
  LiveStacks(std::unique_ptr<memory::MemoryReader> memory, base::Pid process,
             const RuntimeLayout& layout, base::RemoteAddress runtime,
             base::RemoteAddress code_type);

  [[nodiscard]] std::vector<ThreadStack> read();
  [[nodiscard]] std::vector<ThreadStack> read(std::span<const base::Tid> tids);
  [[nodiscard]] std::optional<CodeNames> names(base::RemoteAddress code);
  [[nodiscard]] std::optional<CodeNames> names(const PythonFrame& frame) const;
  [[nodiscard]] const StackReader::Losses& losses() const { return losses_; }
  void forget_losses() { losses_ = {}; }
  [[nodiscard]] const std::vector<base::Tid>& unread() const { return unread_; }

 private:
  enum class Outcome { kRead, kOuterRead, kGone, kChanged, kUnreadable };
  // The states of one thread, one for each interpreter that it has worked in.
  using States = std::span<KnownThread>;

  void update();
  [[nodiscard]] std::vector<States> by_thread();
  [[nodiscard]] States states_of(base::Tid tid);
  // Of THREADS, those that are as they were; the others stay in THREADS.
  [[nodiscard]] std::vector<ThreadStack> take_unchanged(std::vector<States>& threads);
  // False: one of STATES is another thread's by now.
  [[nodiscard]] bool read_thread(States states, std::vector<ThreadStack>& stacks);
  [[nodiscard]] Outcome read_state(KnownThread& state, RawStack& stack);
  void remember(KnownThread& state);

  std::unique_ptr<memory::MemoryReader> memory_;
  RuntimeLayout layout_;
  PageCache pages_;
  CodeObjects codes_;
  ThreadList threads_;
  StackReader::Losses losses_;
  std::vector<base::Tid> unread_;
  std::size_t remembered_ = 0;  // bytes in the snapshots
};

}  // namespace pyinject::python
