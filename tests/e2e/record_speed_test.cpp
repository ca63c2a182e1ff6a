// What a recording leaves of a program's speed: nothing while it runs would be hard to believe, so
// that it is slower while the trampoline is on is shown by the same measurement.
#include "e2e/served_tree.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pyinject::test {
namespace {

// Answers each line, a number of seconds, with how often it came to fib(15) per second of CPU time.
constexpr const char* kCalls = R"(
import sys
import time
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def speed(seconds):
    begin = now = time.process_time()
    rounds = 0
    while now < begin + seconds:
        assert fib(15) == 610
        rounds += 1
        now = time.process_time()
    return rounds / (now - begin)
speed(0.05)
print('ready', flush=True)
for line in sys.stdin:
    print(speed(float(line)), flush=True)
)";

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double speed_of(PythonProcess& python) {
  python.send_line("0.15");
  return std::stod(python.read_line(std::chrono::seconds{60}));
}

class SpeedOfCalls : public testing::TestWithParam<Interpreter> {};

TEST_P(SpeedOfCalls, IsThatOfBeforeWhenTheRecordingIsOver) {
  const TempDir folder;
  std::vector<double> before;
  std::vector<double> active;
  std::vector<double> after;
  for (int pair = 0; pair < 5; ++pair) {
    PythonProcess python{GetParam(), kCalls};
    const auto pid = std::to_string(python.pid().value());
    before.push_back(speed_of(python));
    {
      RunningRecord record{{"-p", pid, "-F", "99", "-o", folder / "perf.data"}};
      active.push_back(speed_of(python));
      EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    }
    after.push_back(speed_of(python));
    python.child().close_stdin();
    EXPECT_EQ(python.child().wait(base::Deadline::after(std::chrono::seconds{20})), ExitStatus{});
    remove_maps(GetParam(), pid);
  }
  const double afterwards = median(after) / median(before);
  const double meanwhile = median(active) / median(before);
  RecordProperty("ratio_after", fmt::format("{:.3f}", afterwards));
  RecordProperty("ratio_active", fmt::format("{:.3f}", meanwhile));
  EXPECT_GT(afterwards, 0.8);
  EXPECT_LT(afterwards, 1.25);
  EXPECT_LT(meanwhile, 0.9) << "the measurement does not see the trampoline";
}

INSTANTIATE_TEST_SUITE_P(Versions, SpeedOfCalls, testing::ValuesIn(one_of_each_version()),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
