// Whether the engine that reads stacks by BPF has to work here.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <chrono>
#include <string>

namespace pyinject::test {

// What this machine, this user or this build lacks for it; empty: nothing.
[[nodiscard]] std::string bpf_engine_lacks();

// The kernel counts the time of all programs like it, while this object lives.
class BpfTimeCount {
 public:
  // TOOL: a process whose own the program is. Throws base::SystemError when it may not.
  explicit BpfTimeCount(base::Pid tool);
  // That its programs have taken, since the kernel counts.
  [[nodiscard]] std::chrono::nanoseconds time() const;

 private:
  base::Pid tool_;
  base::UniqueFd counting_;
};

}  // namespace pyinject::test
