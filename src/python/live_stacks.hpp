// The stacks of a target that runs on meanwhile: what StackReader does, once the layout is known.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/tracee/remote_memory.hpp"
#include "python/code_objects.hpp"
#include "python/frame_walk.hpp"
#include "python/page_cache.hpp"
#include "python/runtime_layout.hpp"
#include "python/thread_list.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::python {

// Nothing stands still while it is read. A stack is believed when
//   its frames are the same calls twice, one read after the other, and their code objects have been
//   looked at between; or
//   all that it was read from has the same content as when it was last believed, and its code
//   objects, looked at afterwards, are the same, too.
// The latter makes threads that wait cheap, which most do.
class LiveStacks {
 public:
  // CODE_TYPE: where the target has PyCode_Type.
  LiveStacks(const Target& target, const RuntimeLayout& layout, base::RemoteAddress code_type);

  [[nodiscard]] std::vector<ThreadStack> read();
  [[nodiscard]] std::vector<ThreadStack> read(std::span<const base::Tid> tids);
  [[nodiscard]] std::optional<CodeNames> names(base::RemoteAddress code);
  [[nodiscard]] std::optional<CodeNames> names(const PythonFrame& frame) const;
  [[nodiscard]] const StackReader::Losses& losses() const { return losses_; }
  void forget_losses() { losses_ = {}; }

 private:
  enum class Outcome { kRead, kGone, kChanged, kUnreadable };
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

  tracee::ProcessMemory memory_;
  RuntimeLayout layout_;
  PageCache pages_;
  CodeObjects codes_;
  ThreadList threads_;
  StackReader::Losses losses_;
  std::size_t remembered_ = 0;  // bytes in the snapshots
};

}  // namespace pyinject::python
