// Stacks of the BPF engine reach the program's outermost function even while the evaluator is
// entering or leaving a function.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/patience.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pyinject::test {
namespace {

// Does almost nothing but start evaluators and enter and leave generators and coroutines.
constexpr auto kSwitches = R"(
import asyncio, sys, time
async def inner(count):
    await asyncio.sleep(0)
    return count
async def visit(count):
    for _ in range(3):
        await inner(count)
def numbers(count):
    for i in range(count):
        yield i
def use(count):
    return sum(numbers(count)) + sum(1 for _ in numbers(count))
def called_by_c(number):
    return -number
async def serve(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        await asyncio.gather(visit(20), visit(20))
        use(200)
        sorted(range(100), key=called_by_c)
print('ready', flush=True)
for line in sys.stdin:
    asyncio.run(serve(int(line)))
    print('served', flush=True)
)";

class BpfWholeStacks : public testing::TestWithParam<Interpreter> {};

TEST_P(BpfWholeStacks, BeginWithTheProgram) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto limit =
      base::trim(base::read_file("/proc/sys/kernel/perf_event_max_sample_rate").value_or("100000"));
  const auto frequency = base::parse_number<int>(limit).value_or(0) < 10000 ? limit : "10000";
  const TempDir directory;
  PythonProcess target{GetParam(), kSwitches};
  const auto pid = std::to_string(target.pid().value());
  RunningRecord running{bpf_record(pid, directory / "data", std::string{frequency})};
  target.send_line("2");
  EXPECT_EQ(target.read_line(kPatience), "served");
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::size_t samples = 0;
  std::size_t cut = 0;
  std::string first;
  for (const auto& sample : scripted_samples(directory / "data")) {
    const auto chain = sample.chain();
    ++samples;
    if (chain.empty() || chain.front() != "<module>") {
      ++cut;
      first = first.empty() ? testing::PrintToString(chain) : first;
    }
  }
  EXPECT_GE(samples, 1000U);
  // The frames outside the innermost one may not be found (docs/bpf.md, 3): 1 of 700,000 with
  // 3.12.1. The defect that this test looks for affected 3 and 40 of 10,000.
  EXPECT_TRUE(share_is_at_most({.count = cut, .all = samples}, 1.0 / 700'000))
      << "first: " << first << "\n"
      << running.child().err();
  RecordProperty("samples", std::to_string(samples));
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfWholeStacks,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
