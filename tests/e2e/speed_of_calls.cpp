#include "e2e/speed_of_calls.hpp"

#include "e2e/served_tree.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include <sched.h>

namespace pyinject::test {
namespace {

constexpr std::size_t kFewestProcesses = 5;
constexpr std::size_t kMostProcesses = 25;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The same processor for all: one may be much faster than another for seconds.
void keep_on_one_processor(const PythonProcess& python) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::size_t first = 0;
  while (!CPU_ISSET(first, &allowed)) {
    ++first;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(python.pid().value(), sizeof one, &one), 0);
}

// That of PYTHON relative to OTHER, which nobody records: the machine's speed varies.
double speed_beside(PythonProcess& python, PythonProcess& other) {
  constexpr double kWindow = 0.015;  // seconds; short, so that both see the same machine
  std::vector<double> ratios;
  for (int turn = 0; turn < 9; ++turn) {
    const double own = speed_of(python, kWindow);
    ratios.push_back(own / speed_of(other, kWindow));
  }
  return median_of(ratios);
}

}  // namespace

double speed_of(PythonProcess& python, double seconds) {
  python.send_line(std::to_string(seconds));
  return std::stod(python.read_line(kPatience));
}

RelativeSpeed relative_speed(const Interpreter& python, const std::vector<std::string>& options,
                             const std::function<bool(const RelativeSpeed&)>& as_expected) {
  const TempDir directory;
  PythonProcess untouched{python, kCallsAllTheTime};
  keep_on_one_processor(untouched);
  std::vector<double> active;
  std::vector<double> after;
  RelativeSpeed speed;
  while (active.size() < kFewestProcesses ||
         (active.size() < kMostProcesses && !as_expected(speed))) {
    PythonProcess recorded{python, kCallsAllTheTime};
    const auto pid = std::to_string(recorded.pid().value());
    keep_on_one_processor(recorded);
    const double before = speed_beside(recorded, untouched);
    {
      std::vector<std::string> arguments{"-p", pid, "-o", directory / "perf.data"};
      arguments.insert(arguments.end(), options.begin(), options.end());
      RunningRecord record{arguments};
      active.push_back(speed_beside(recorded, untouched) / before);
      EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    }
    after.push_back(speed_beside(recorded, untouched) / before);
    recorded.child().close_stdin();
    EXPECT_EQ(recorded.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
    remove_maps(python, pid);
    speed = {.active = median_of(active), .after = median_of(after)};
  }
  testing::Test::RecordProperty("active", fmt::format("{:.2f}", fmt::join(active, " ")));
  testing::Test::RecordProperty("after", fmt::format("{:.2f}", fmt::join(after, " ")));
  return speed;
}

}  // namespace pyinject::test
