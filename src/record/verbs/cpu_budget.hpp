// record --max-cpu: how often the next recordings may sample.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace pyinject::record {

// A tenth of REQUESTED, but at least 1. Below, a recording hardly takes less: most of its cost does
// not depend on the frequency any more.
[[nodiscard]] std::uint64_t lowest_frequency(std::uint64_t requested);

// The frequency after a recording at CURRENT that took the share USED of one CPU. Above BUDGET it
// is lower, and expected to take 80 % of BUDGET, but at least a quarter of CURRENT. At half of
// BUDGET or less it is higher, at most twice as high. Between lowest_frequency() and REQUESTED.
[[nodiscard]] std::uint64_t next_frequency(double used, double budget, std::uint64_t current,
                                           std::uint64_t requested);

// CPU time and wall time since some moment.
struct CpuUse {
  std::chrono::nanoseconds cpu{};
  std::chrono::nanoseconds wall{};
};
// Of this process, of its children that have ended, and of its BPF programs (see
// bpf::ProgramTimes).
[[nodiscard]] CpuUse cpu_use_until_now();

class CpuBudget {
 public:
  // SHARE of one CPU.
  CpuBudget(double share, std::uint64_t requested)
      : share_{share}, requested_{requested}, frequency_{requested} {}

  [[nodiscard]] std::uint64_t frequency() const { return frequency_; }
  // The latest recording took more, at the lowest frequency.
  [[nodiscard]] bool exceeded() const { return exceeded_; }
  // Sets frequency() for the next recordings after one that took USE. Returns a message if there is
  // a reason for one.
  [[nodiscard]] std::optional<std::string> adapt(const CpuUse& use);

 private:
  double share_;
  std::uint64_t requested_;
  std::uint64_t frequency_;
  bool exceeded_ = false;
};

}  // namespace pyinject::record
