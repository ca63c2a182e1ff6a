// The address ranges of the evaluator, compared with the instruction pointers of stopped programs.
#include "integration/detection.hpp"
#include "pyinject/python/evaluator.hpp"
#include "support/covering.hpp"
#include "support/cpu_time.hpp"
#include "support/patience.hpp"
#include "support/statistics.hpp"
#include "tracee/stopped_process.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>

#include <sched.h>

namespace pyinject::test {
namespace {

class PythonEvaluatorTest : public DetectionTest {};

base::RemoteAddress instruction_pointer(const python::Target& target) {
  base::RemoteAddress found;
  tracee::on_tracer_thread([&] {
    auto stopped = tracee::StoppedProcess::stop(target.id, base::Deadline::after(kPatience));
    ASSERT_TRUE(std::holds_alternative<tracee::StoppedProcess>(stopped));
    const auto& threads = std::get<tracee::StoppedProcess>(stopped).threads();
    ASSERT_EQ(threads.size(), 1U);
    const auto registers = tracee::read_registers(threads.front().tid);
    ASSERT_TRUE(registers.has_value());
    found = registers->instruction_pointer();
  });
  return found;
}

TEST_P(PythonEvaluatorTest, ByteCodeRunsInItsRanges) {
  if (GetParam().free_threaded && GetParam().minor == 13) {
    GTEST_SKIP() << "it specialises no instruction, so most of the time is in C functions";
  }
  // This work calls no other function of CPython.
  PythonProcess python{GetParam(),
                       "print('ready', flush=True)\n"
                       "def work():\n"
                       "    a, b = 1, None\n"
                       "    while a is not b: a, b = (None, 1) if b is None else (1, None)\n"
                       "work()\n"};
  const auto target = observe(python.pid());
  const auto ranges = python::evaluator_ranges(target);
  ASSERT_FALSE(ranges.empty());
  std::uint64_t bytes = 0;
  for (const auto& range : ranges) {
    ASSERT_LT(range.begin, range.end);
    EXPECT_GE(range.begin, target.text_begin);
    EXPECT_LE(range.end, target.text_end);
    bytes += range.end.value() - range.begin.value();
  }
  EXPECT_GT(bytes, 20'000U) << "it is one of the largest functions";
  EXPECT_LT(bytes, 1'000'000U);
  // Lets it run before each stop; otherwise it would not have moved.
  const auto work_on = [&python](std::chrono::milliseconds time) {
    const auto end = cpu_time(python.pid()) + time;
    const auto deadline = base::Deadline::after(kPatience);
    while (cpu_time(python.pid()) < end && !deadline.expired()) {
      ::sched_yield();
    }
  };
  work_on(std::chrono::milliseconds{20});  // until it has finished printing `ready`
  constexpr std::size_t kStops = 40;
  std::size_t inside = 0;
  for (std::size_t i = 0; i < kStops; ++i) {
    work_on(std::chrono::milliseconds{1});
    const auto place = instruction_pointer(target);
    inside +=
        std::ranges::any_of(ranges, [place](const auto& range) { return range.contains(place); })
            ? 1
            : 0;
  }
  RecordProperty("inside", std::to_string(inside));
  EXPECT_TRUE(share_is_at_least({.count = inside, .all = kStops}, 0.9));
}

COVER(PythonEvaluatorTest, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonEvaluatorTest,
                         testing::ValuesIn(interpreters({.only_read = true})), InterpreterName{});

}  // namespace
}  // namespace pyinject::test
