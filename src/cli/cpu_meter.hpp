// Measures how much of a CPU each process uses.
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>
#include <cstdint>
#include <map>

namespace pyinject::cli {

// Shares of one CPU.
using CpuShares = std::map<base::Pid, double>;

// From its construction on.
class CpuMeter {
 public:
  CpuMeter();
  // Of the processes that existed all the time. Waits until half a second has passed.
  [[nodiscard]] CpuShares shares() const;

 private:
  struct CpuTime {
    std::uint64_t start_time = 0;
    std::chrono::nanoseconds on_cpu{};  // clock_getcpuclockid(3)
  };
  using CpuTimes = std::map<base::Pid, CpuTime>;
  [[nodiscard]] static CpuTimes read();

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  CpuTimes before_;
};

}  // namespace pyinject::cli
