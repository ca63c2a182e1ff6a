// The thread states of a target in all its interpreters, and their threads.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/layout/stack_owners.hpp"
#include "python/layout/thread_numbers.hpp"
#include "python/stacks/page_cache.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace pyinject::python {

struct KnownThread {
  base::RemoteAddress address;      // of the PyThreadState
  base::RemoteAddress interpreter;  // the interpreter that it belongs to
  std::uint64_t native_id = 0;
  base::Tid tid;
  // Its pages at the last read, and the content and code objects with which its stack was accepted.
  std::vector<base::RemoteAddress> pages;
  Snapshot snapshot;
  std::vector<base::RemoteAddress> codes;
  // Only in the first state of a thread: the thread's stack and the number of states it was read
  // from. 0: no stack.
  ThreadStack stack;
  std::size_t states = 0;
};

class ThreadList {
 public:
  ThreadList(const memory::MemoryReader& memory, const RuntimeLayout& layout,
             base::RemoteAddress runtime, ThreadNumbers numbers)
      : memory_{memory},
        layout_{layout},
        runtime_{runtime},
        numbers_{std::move(numbers)},
        owners_{layout} {}

  // Reads the lists. Returns the number of interpreters with an incompletely read list.
  std::size_t update();
  // True if threads or interpreters have been added since the last update, or if another thread
  // may run an interpreter now. Does not detect removals.
  [[nodiscard]] bool has_new() const;
  // Whether THREAD still belongs to the same thread according to MEMORY.
  [[nodiscard]] bool is_still(const memory::MemoryReader& memory, const KnownThread& thread) const;

  // How many interpreters the process had made at the last update.
  [[nodiscard]] std::uint64_t interpreters_made() const { return interpreters_made_; }
  // That which runs pending calls; nullopt: it has no thread state.
  [[nodiscard]] std::optional<base::Tid> main_thread() const { return main_thread_; }

  // Ordered by tid: a thread that has worked in several interpreters has several entries.
  [[nodiscard]] std::vector<KnownThread>& threads() { return threads_; }

 private:
  // A word of the target that changes when a thread is added: the head of a list, where new ones
  // are inserted, or the id of a thread that has not started.
  struct Sign {
    base::RemoteAddress at;
    std::uint64_t value = 0;
  };
  void watch(base::RemoteAddress at);
  // Whether other threads than the one that is named in it may run Python in this state.
  [[nodiscard]] bool moves(base::RemoteAddress interpreter) const {
    return owners_.needed() && interpreter != main_;
  }

  const memory::MemoryReader& memory_;
  const RuntimeLayout& layout_;
  base::RemoteAddress runtime_;
  ThreadNumbers numbers_;
  std::vector<Sign> signs_;
  std::vector<KnownThread> threads_;
  StackOwners owners_;
  std::uint64_t interpreters_made_ = 0;
  std::optional<base::Tid> main_thread_;
  base::RemoteAddress main_;  // the main interpreter; null: unknown
};

}  // namespace pyinject::python
