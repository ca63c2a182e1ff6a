// Which thread states a target has, in all its interpreters, and whose they are.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/stacks/page_cache.hpp"
#include "python/stacks/thread_numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pyinject::python {

struct KnownThread {
  base::RemoteAddress address;      // of the PyThreadState
  base::RemoteAddress interpreter;  // that it belongs to
  std::uint64_t native_id = 0;
  base::Tid tid;
  // How its stack was read last, and with which content and code objects it was believed.
  std::vector<base::RemoteAddress> pages;
  Snapshot snapshot;
  std::vector<base::RemoteAddress> codes;
  // Where it is the first of a thread's: the thread's stack, and how many states that is from. 0:
  // there is none.
  ThreadStack stack;
  std::size_t states = 0;
};

class ThreadList {
 public:
  ThreadList(const memory::MemoryReader& memory, const RuntimeLayout& layout,
             base::RemoteAddress runtime, base::Pid process)
      : memory_{memory}, layout_{layout}, runtime_{runtime}, numbers_{process} {}

  // Reads the lists. Returns how many interpreters' could not be read to their ends.
  std::size_t update();
  // True when threads or interpreters have come since the last update. That some have gone is not
  // seen.
  [[nodiscard]] bool has_new() const;
  // It belongs to the thread that it belonged to, by what MEMORY shows.
  [[nodiscard]] bool is_still(const memory::MemoryReader& memory, const KnownThread& thread) const;

  // Ordered by tid: a thread that has worked in several interpreters has several.
  [[nodiscard]] std::vector<KnownThread>& threads() { return threads_; }

 private:
  // A word of the target that changes when a thread comes: the head of a list, which is where new
  // ones are put, or the number of a thread that has not begun.
  struct Sign {
    base::RemoteAddress at;
    std::uint64_t value = 0;
  };
  void watch(base::RemoteAddress at);

  const memory::MemoryReader& memory_;
  const RuntimeLayout& layout_;
  base::RemoteAddress runtime_;
  ThreadNumbers numbers_;
  std::vector<Sign> signs_;
  std::vector<KnownThread> threads_;
};

}  // namespace pyinject::python
