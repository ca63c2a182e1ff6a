// What a thread that a sample found at work was doing: Python, C, garbage collection, imports or
// the kernel.
#pragma once

#include "bpf/code_files.hpp"
#include "live/profile.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"

#include <cstdint>
#include <map>
#include <unordered_set>

namespace pyinject::live {

class UseJudge {
 public:
  void note(const sample::Code& code);
  void add(const python::Target& target) { code_files_.emplace(target.id.pid, target); }
  void remove(base::Pid pid) { code_files_.erase(pid); }
  // Of a stack that was read by BPF: only it has the address.
  [[nodiscard]] Use of(const sample::Stack& stack);

 private:
  std::map<base::Pid, bpf::CodeFiles> code_files_;
  std::unordered_set<std::uint64_t> import_system_;  // Code::number of its functions
};

}  // namespace pyinject::live
