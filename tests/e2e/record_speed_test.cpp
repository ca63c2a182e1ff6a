// The speed of a program after a recording. To show that the measurement works, it must see the
// slowdown while the trampoline is on.
#include "e2e/served_tree.hpp"
#include "e2e/speed_of_calls.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pyinject::test {
namespace {

class SpeedOfCalls : public testing::TestWithParam<Interpreter> {};

TEST_P(SpeedOfCalls, IsThatOfBeforeWhenTheRecordingIsOver) {
  const TempDir directory;
  std::vector<double> before;
  std::vector<double> active;
  std::vector<double> after;
  PythonProcess untouched{GetParam(), kCallsAllTheTime};
  keep_on_one_processor(untouched);
  for (int pair = 0; pair < 5; ++pair) {
    PythonProcess python{GetParam(), kCallsAllTheTime};
    const auto pid = std::to_string(python.pid().value());
    keep_on_one_processor(python);
    // The machine's speed varies: measure alternately, in short windows.
    const auto speed = [&] {
      std::vector<double> ratios;
      for (int turn = 0; turn < 9; ++turn) {
        const double own = speed_of(python, 0.015);
        ratios.push_back(own / speed_of(untouched, 0.015));
      }
      return median(ratios);
    };
    before.push_back(speed());
    {
      RunningRecord record{{"-p", pid, "-F", "99", "-o", directory / "perf.data"}};
      active.push_back(speed());
      EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    }
    after.push_back(speed());
    python.child().close_stdin();
    EXPECT_EQ(python.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
    remove_maps(GetParam(), pid);
  }
  const double afterwards = median(after) / median(before);
  const double meanwhile = median(active) / median(before);
  RecordProperty("ratio_after", fmt::format("{:.3f}", afterwards));
  RecordProperty("ratio_active", fmt::format("{:.3f}", meanwhile));
  const auto said = [](const std::vector<double>& ratios) {
    return fmt::format("{:.2f}", fmt::join(ratios, " "));
  };
  SCOPED_TRACE("before " + said(before) + ", active " + said(active) + ", after " + said(after));
  EXPECT_GT(afterwards, 0.9);
  EXPECT_LT(afterwards, 1.1);
  EXPECT_LT(meanwhile, 0.9) << "the measurement does not see the trampoline";
}

INSTANTIATE_TEST_SUITE_P(Pythons, SpeedOfCalls,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
