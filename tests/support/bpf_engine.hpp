// Whether the BPF engine can work on this machine, and the CPU time it takes.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace pyinject::test {

// What the BPF engine needs that this machine, user or build lacks; empty: nothing.
[[nodiscard]] std::string bpf_engine_lacks();

// The sum of FIELD, such as "verified_insns:", of all BPF programs of TOOL.
[[nodiscard]] long sum_of_programs(base::Pid tool, std::string_view field);

// The CPU time of a tool's BPF programs. The kernel counts it while this object exists.
class BpfTimeCount {
 public:
  // TOOL: the process that holds the programs. Throws base::SystemError if counting is not
  // permitted.
  explicit BpfTimeCount(base::Pid tool);
  // The time that all programs of TOOL have run since the kernel counts.
  [[nodiscard]] std::chrono::nanoseconds time() const;

 private:
  base::Pid tool_;
  base::UniqueFd counting_;
};

}  // namespace pyinject::test
