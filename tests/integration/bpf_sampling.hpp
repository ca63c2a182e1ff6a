// Shared by the tests of the BPF program, which runs on a perf event of the test's own.
#pragma once

#include "bpf/sampler.hpp"
#include "integration/detection.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pyinject::test {

// The first lines of a target. spin() prints `ready` from within: no sample has another function,
// however late the process continues. ready() is for programs that wait afterwards.
inline constexpr auto kReady = R"(
import os, sys
def ready():
    print('ready', flush=True)
def spin():
    # Its own lines: the next two.
    while print('ready', flush=True) is None:
        while True: pass
)";

enum class SampledEvent { kClock, kSwitches };

class BpfSampling : public DetectionTest {
 protected:
  void open(const bpf::SamplerOptions& options = {});
  // From now on, samples PID and what it forks: every millisecond of CPU time, or whenever a thread
  // leaves a processor.
  void sample(base::Pid pid, SampledEvent event = SampledEvent::kClock);
  // Waits for WANTED stacks for which COUNTS is true.
  void collect(std::size_t wanted, const std::function<bool(const sample::Stack&)>& counts);
  void collect(std::size_t wanted);
  // Waits until the sampled threads have run for TIME more.
  void let_run(std::chrono::milliseconds time);
  // Stops sampling before it reads the counters, since the program increments them one by one.
  [[nodiscard]] bpf::Counters final_counters();

  // Innermost first; "|" follows the outermost frame of each group.
  [[nodiscard]] std::string text(const sample::Stack& stack);
  [[nodiscard]] std::vector<std::string> texts();

  std::unique_ptr<bpf::Sampler> sampler_;
  base::UniqueFd event_;
  python::FrameLayout layout_;  // of the latest target
  std::map<std::uint64_t, std::string> names_;
  std::vector<sample::Stack> stacks_;
};

// The layout of PID's frames. Fails if it is not a Python that can be sampled.
[[nodiscard]] python::FrameLayout layout_of(base::Pid pid);

}  // namespace pyinject::test
