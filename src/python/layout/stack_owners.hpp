// Which thread a stack belongs to, and so which one runs an interpreter of 3.12.
#pragma once

#include "memory/process_memory.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/runtime_layout.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace pyinject::python {

// In 3.12, _xxsubinterpreters runs code in the thread state of the thread that has created the
// interpreter, whichever thread runs it (Modules/_xxsubinterpretersmodule.c,
// _run_script_in_interpreter()). The state's _PyCFrame is on the stack of the thread that runs it,
// and pthread_self() of each thread but the main one is above that thread's stack. The main
// thread's stack is above everything.
class StackOwners {
 public:
  // LAYOUT must outlive it.
  explicit StackOwners(const RuntimeLayout& layout) : layout_{layout} {}

  // Whether thread states can be those of another thread.
  [[nodiscard]] bool needed() const { return layout_.stack.frame_in_cframe; }
  void clear();
  void add(std::uint64_t pthread_self, base::Tid tid) { threads_.emplace(pthread_self, tid); }
  void set_main(base::Tid tid) { main_ = tid; }
  // The thread that runs Python in STATE of an interpreter that is not the main one; OWN, the one
  // that the state names, if none runs any.
  [[nodiscard]] base::Tid owner(const memory::MemoryReader& memory, base::RemoteAddress state,
                                base::Tid own) const;
  // The thread whose stack contains ADDRESS. MAPPINGS: in ascending order. nullopt: unknown, as for
  // a thread that has exited.
  [[nodiscard]] std::optional<base::Tid> at(base::RemoteAddress address,
                                            const std::vector<procfs::Mapping>& mappings) const;

 private:
  const RuntimeLayout& layout_;
  std::map<std::uint64_t, base::Tid> threads_;  // by pthread_self()
  std::optional<base::Tid> main_;
};

}  // namespace pyinject::python
