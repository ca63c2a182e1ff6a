// Tasks of a program that starts to use asyncio while it is recorded.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace pyinject::test {
namespace {

// Its task runs for longer than the interval at which the engine checks for asyncio.
constexpr auto kLater = R"(
import sys, time
print('ready', flush=True)
sys.stdin.readline()
import asyncio
async def spin():
    end = time.process_time() + 3
    while time.process_time() < end:
        pass
async def main():
    await asyncio.create_task(spin(), name='late')
asyncio.run(main())
print('done', flush=True)
sys.stdin.read()
)";

class BpfLateTasks : public testing::TestWithParam<Build> {};

TEST_P(BpfLateTasks, AreInTheRecording) {
  const auto lacks = bpf_engine_lacks();
  const auto python = find_build(GetParam());
  if (!lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  const TempDir directory;
  const std::string data = directory / "data";
  PythonProcess target{*python, kLater};
  auto arguments = bpf_record(std::to_string(target.pid().value()), data);
  arguments.emplace_back("--tasks");
  RunningRecord running{arguments};
  target.send_line("go");
  EXPECT_EQ(target.read_line(kPatience), "done");
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto samples = samples_without_kernel_names(data);
  EXPECT_TRUE(std::ranges::any_of(samples, [](const ScriptedSample& sample) {
    return std::ranges::any_of(
        sample.frames, [](const ScriptFrame& frame) { return frame.symbol == "[task late]"; });
  })) << running.child().err();
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfLateTasks,
                         testing::Values(Build{.minor = 14}, Build{.minor = 15}), BuildName{});

}  // namespace
}  // namespace pyinject::test
