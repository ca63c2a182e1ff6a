// What a thread that a sample found at work was doing: Python, C, garbage collection, imports or
// the kernel.
#pragma once

#include "bpf/code_files.hpp"
#include "live/profile.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_set>

namespace pyinject::live {

class UseJudge {
 public:
  void note(const sample::Code& code);
  void add(const python::Target& target);
  void remove(base::Pid pid) { programs_.erase(pid); }

  struct Found {
    Use use = Use::kUnknown;
    std::uint64_t c_function = 0;  // kC: its code, by a number of its own; 0: unknown
  };
  // Of a stack that was read by BPF: only it has the address.
  [[nodiscard]] Found of(const sample::Stack& stack);
  // Tells PROFILE what the C functions are called that have been found since; of a process that has
  // exited meanwhile, nothing.
  void name_c_functions(Profile& profile);

 private:
  struct Program {
    bpf::CodeFiles files;
    std::uint64_t serial = 0;  // number of the program, so that no other one has its C functions
    std::size_t named = 1;     // codes
  };
  std::map<base::Pid, Program> programs_;
  std::uint64_t programs_so_far_ = 0;
  std::unordered_set<std::uint64_t> import_system_;  // Code::number of its functions
};

}  // namespace pyinject::live
