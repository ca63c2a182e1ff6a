// The C functions of threads that do not run: their stacks are copied meanwhile, and unwound
// afterwards.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/evaluator.hpp"
#include "pyinject/python/target.hpp"
#include "tracee/registers.hpp"
#include "unwind/registers.hpp"
#include "weave/merge.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pyinject::inspect {

struct NativeFunction {
  weave::AddressKind kind = weave::AddressKind::kOther;
  std::string name;           // of its symbol; empty: unknown
  std::string file;           // the mapped file, "[vdso]"; empty: anonymous memory
  std::uint64_t address = 0;  // in FILE
};

struct NativeStack {
  std::vector<NativeFunction> functions;  // innermost first
  std::string missing;                    // why outer functions are missing; empty: none are
};

// Of a thread that does not run.
struct ThreadRegisters {
  unwind::Registers registers;       // those that are known: at least the stack pointer
  std::uint64_t thread_pointer = 0;  // 0: unknown
};

class NativeStacks {
 public:
  // TARGET: nullptr if the interpreter is unknown.
  explicit NativeStacks(const python::Target* target);

  // Copies the stacks of threads, which must not run meanwhile.
  void copy(const std::map<base::Tid, ThreadRegisters>& threads);
  // The same for stopped threads.
  void copy(const std::map<base::Tid, tracee::Registers>& threads);
  // Unwinds the copies. Opens and reads the mapped files: takes some milliseconds per file.
  [[nodiscard]] std::map<base::Tid, NativeStack> unwind() const;

 private:
  struct Copy {
    unwind::Registers registers;
    std::vector<std::byte> bytes;
    bool cut = false;  // the stack is larger
  };

  base::Pid alive_;  // one of the threads: names the memory even if the main thread has exited
  std::vector<python::CodeRange> evaluator_;
  std::vector<procfs::Mapping> maps_;
  std::map<base::Tid, Copy> copies_;
};

}  // namespace pyinject::inspect
