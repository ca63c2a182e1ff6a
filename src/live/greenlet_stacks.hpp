// Tells the stacks of greenlets from those of their threads, by the C functions.
#pragma once

#include "bpf/native_tables.hpp"
#include "bpf/sampler.hpp"
#include "elf/greenlet_functions.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace pyinject::live {

// Has the native stacks of processes read that use greenlet, and of no others.
class GreenletStacks {
 public:
  // TABLES must outlive this object.
  explicit GreenletStacks(bpf::NativeTables& tables) : tables_{tables} {}

  // PID has a new program, or it is a new process.
  void add(base::Pid pid);
  void remove(base::Pid pid);
  // Looks at some processes, in turn: they may have loaded greenlet, or other files, since.
  void look();
  // Whether STACK is that of a greenlet. During a switch this is not known: false.
  [[nodiscard]] bool has(const sample::Stack& stack) const;

 private:
  // Of greenlet's module.
  struct Module {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<elf::GreenletFunction> functions;  // empty: not loaded, or without the names
    bool examined = false;
  };
  void look_at(base::Pid pid, Module& module);
  static void examine(base::Pid pid, const procfs::Mapping& mapping, Module& module);

  bpf::NativeTables& tables_;
  std::map<base::Pid, Module> processes_;
  base::Pid latest_;  // that was looked at
};

}  // namespace pyinject::live
