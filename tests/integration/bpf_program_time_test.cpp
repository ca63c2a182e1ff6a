// The CPU time of the BPF program, as --max-cpu counts it.
#include "bpf/program_time.hpp"
#include "integration/bpf_sampling.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace pyinject::test {
namespace {

class BpfProgramTime : public BpfSampling {};

TEST_P(BpfProgramTime, IsThatOfEachSample) {
  PythonProcess python{GetParam(), std::string{kReady} + "spin()\n"};
  const bpf::ProgramTimes times;
  if (!times.measured()) {
    GTEST_SKIP() << "no CAP_SYS_ADMIN";
  }
  open();
  sample(python.pid());
  collect(100);
  const auto before = bpf::program_time();
  const auto samples = final_counters().samples;
  sampler_.reset();
  const auto each = (bpf::program_time() - before) / samples;
  EXPECT_GT(each, std::chrono::nanoseconds{100});
  EXPECT_LT(each, std::chrono::milliseconds{1});
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfProgramTime,
                         testing::ValuesIn(interpreters({.minor = 14,
                                                         .each_version = Prefer::kChrooted})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
