// What the tests of the program in the kernel share: it runs on a perf event of the test's own.
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

// The first lines of a target. spin() says so from where it stays: however late it goes on, no
// sample has another function. ready() is for those that then wait.
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
  // Samples PID and what it forks from now on: each millisecond on a processor, or whenever a
  // thread leaves one.
  void sample(base::Pid pid, SampledEvent event = SampledEvent::kClock);
  // Until there are as many stacks as WANTED of those that COUNTS.
  void collect(std::size_t wanted, const std::function<bool(const bpf::Stack&)>& counts);
  void collect(std::size_t wanted);
  // Until the sampled threads have been on a processor for so much longer.
  void let_run(std::chrono::milliseconds time);
  // Ends sampling before it reads them: the program counts one after the other.
  [[nodiscard]] bpf::Counters final_counters();

  // Innermost first; "|" behind the outermost of each group.
  [[nodiscard]] std::string text(const bpf::Stack& stack);
  [[nodiscard]] std::vector<std::string> texts();

  std::unique_ptr<bpf::Sampler> sampler_;
  base::UniqueFd event_;
  python::FrameLayout layout_;  // of what was sampled last
  std::map<std::uint32_t, std::string> names_;
  std::vector<bpf::Stack> stacks_;
};

// Where PID has its frames. Fails when it is no Python that can be sampled.
[[nodiscard]] python::FrameLayout layout_of(base::Pid pid);

}  // namespace pyinject::test
