// What the kernel does to load the BPF program: each start of the tool waits for it.
#include "bpf/sampler.hpp"
#include "pyinject/base/pid.hpp"
#include "support/bpf_engine.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <variant>

#include <unistd.h>

namespace pyinject::test {
namespace {

// Linux 6.18 processes 26,000 instructions for all parts of the program. They were 270,000, which
// took 0.8 s of processor time, when the verifier checked each function at each call.
TEST(BpfLoad, TakesTheVerifierFewInstructions) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto opened = bpf::Sampler::open({.gil = true, .tasks = true, .native = true},
                                         {.code = [](const sample::Code& /*code*/) {},
                                          .stack = [](const sample::Stack& /*stack*/) {}});
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<bpf::Sampler>>(opened));
  const auto processed = sum_of_programs(base::Pid{::getpid()}, "verified_insns:");
  if (processed == 0) {
    GTEST_SKIP() << "before Linux 5.16, /proc/PID/fdinfo does not have verified_insns";
  }
  EXPECT_LT(processed, 40'000);
}

}  // namespace
}  // namespace pyinject::test
