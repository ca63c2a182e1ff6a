// The CPU time that the BPF programs of this process take in the kernel.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <chrono>

struct bpf_object;

namespace pyinject::bpf {

// While it exists, the kernel measures the time of all BPF programs of the machine. Needs
// CAP_SYS_ADMIN; without it, nothing is measured.
class ProgramTimes {
 public:
  ProgramTimes();
  [[nodiscard]] bool measured() const { return statistics_.valid(); }

 private:
  base::UniqueFd statistics_;
};

// Of all programs that were closed, as far as it was measured.
[[nodiscard]] std::chrono::nanoseconds program_time();
// Adds that of OBJECT's programs, which are about to be closed.
void add_program_time(bpf_object* object);

}  // namespace pyinject::bpf
