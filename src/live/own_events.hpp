// Sampling events of this process for the whole system, without a perf and without a file: only the
// BPF program takes their samples.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::live {

class OwnEvents {
 public:
  // One disabled cpu-clock event for each processor that is online. Returns a string that says why
  // not, with the remedy. Needs CAP_PERFMON or kernel.perf_event_paranoid < 1.
  [[nodiscard]] static std::variant<OwnEvents, std::string> open(std::chrono::nanoseconds period);

  void enable();

 private:
  std::vector<base::UniqueFd> events_;
};

}  // namespace pyinject::live
