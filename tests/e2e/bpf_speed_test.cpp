// What the BPF engine costs a program that does nothing but calls, beside plain perf and the
// trampoline. The figures are bench/run's; here it is told apart from the trampoline.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "e2e/speed_of_calls.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace pyinject::test {
namespace {

class BpfSpeed : public testing::TestWithParam<Build> {};

TEST_P(BpfSpeed, IsNearlyThatOfOneThatIsNotRecorded) {
  const auto interpreter = find_build(GetParam());
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !interpreter) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  const TempDir folder;
  PythonProcess recorded{*interpreter, kCallsAllTheTime};
  PythonProcess untouched{*interpreter, kCallsAllTheTime};
  // Their windows take turns: both see the same machine.
  const auto ratio_under = [&](const std::string& engine) {
    RunningRecord record{{"--engine", engine, "-p", std::to_string(recorded.pid().value()), "-F",
                          "999", "-e", "cpu-clock", "-o", folder / "data"}};
    std::vector<double> ratios;
    for (int i = 0; i < 9; ++i) {
      const double speed = speed_of(recorded, 0.1);
      ratios.push_back(speed / speed_of(untouched, 0.1));
    }
    EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    return median(ratios);
  };
  const double ratio = ratio_under("bpf");
  const double trampoline = ratio_under("trampoline");
  RecordProperty("ratio_bpf", fmt::format("{:.3f}", ratio));
  RecordProperty("ratio_trampoline", fmt::format("{:.3f}", trampoline));
  EXPECT_GT(ratio, 0.9);
  EXPECT_LT(trampoline, 0.9) << "the measurement does not see the trampoline";
}

INSTANTIATE_TEST_SUITE_P(Builds, BpfSpeed, testing::Values(Build{.minor = 12}, Build{.minor = 15}),
                         BuildName{});

}  // namespace
}  // namespace pyinject::test
