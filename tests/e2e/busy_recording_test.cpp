// Recordings whose perf never reads its commands, since its buffers are never empty.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "e2e/tracefs_use.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/stand_in_perf.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <memory>

#include <unistd.h>

namespace pyinject::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// On a line, it answers after another 0.3 s.
constexpr auto kCallsWithoutPause = R"(
import select, sys, time
def leaf():
    pass
print('ready', flush=True)
until = None
while True:
    for _ in range(5000):
        leaf()
    if until is None and select.select([sys.stdin], [], [], 0)[0] and sys.stdin.readline():
        until = time.process_time() + 0.3
    if until is not None and time.process_time() > until:
        print('worked', flush=True)
        until = None
)";

class BusyRecording : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> bpf_arguments(const PythonProcess& target) {
    auto words = bpf_record(std::to_string(target.pid().value()), directory_ / "data");
    words.insert(words.end(),
                 {"--perf", deaf_perf(directory_), "--stats", directory_ / "stats.json"});
    return words;
  }
  // All samples have been processed until none was left.
  void expect_all_stacks() const {
    const auto figures = bpf_figures(directory_ / "stats.json");
    EXPECT_GE(figures.at("matched"), 100);
    EXPECT_EQ(figures.at("unmatched"), 0);
  }

  TempDir directory_;
};

TEST_F(BusyRecording, HasAllStacksUntilItsEnd) {
  const auto python = plain_interpreter(13);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no CPython 3.13 (scripts/pythons)";
  }
  PythonProcess target{*python, kCallsWithoutPause};
  RunningRecord running{bpf_arguments(target)};
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("did not disable its events within"));
  expect_all_stacks();
}

// The second signal arrives while the tool waits for perf.
TEST_F(BusyRecording, HasAllStacksAfterASecondSignal) {
  const auto python = plain_interpreter(13);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no CPython 3.13 (scripts/pythons)";
  }
  PythonProcess target{*python, kCallsWithoutPause};
  RunningRecord running{bpf_arguments(target)};
  target.send_line("");
  EXPECT_EQ(target.read_line(kPatience), "worked");
  running.child().signal(SIGINT);
  running.child().signal(SIGTERM);
  EXPECT_EQ(running.wait(), (ExitStatus{.code = 128 + SIGINT})) << running.child().err();
  EXPECT_THAT(running.child().err(), Not(HasSubstr("did not disable")));
  expect_all_stacks();
}

// Calls are so frequent that this test needs no stand-in.
TEST_F(BusyRecording, EndsWhileItCountsCalls) {
  const auto python = plain_interpreter(15);
  if (::geteuid() != 0 || !python || ::access("/sys/kernel/tracing/uprobe_events", W_OK) != 0) {
    GTEST_SKIP() << "needs root, tracefs, and CPython 3.15 (scripts/pythons)";
  }
  const TracefsUse tracefs;
  std::vector<std::unique_ptr<PythonProcess>> targets;
  std::vector<std::string> pids;
  for (int i = 0; i < 4; ++i) {
    targets.push_back(std::make_unique<PythonProcess>(*python, kCallsWithoutPause));
    pids.push_back(std::to_string(targets.back()->pid().value()));
  }
  const auto result = run_tool({"record", "--functions", "-o", directory_ / "data",
                                fmt::format("{}", fmt::join(pids, ",")), "-d", "1"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
}

TEST_F(BusyRecording, EndsWhileItCountsCallsAndPerfDoesNotListen) {
  const auto python = plain_interpreter(15);
  if (::geteuid() != 0 || !python || ::access("/sys/kernel/tracing/uprobe_events", W_OK) != 0) {
    GTEST_SKIP() << "needs root, tracefs, and CPython 3.15 (scripts/pythons)";
  }
  const TracefsUse tracefs;
  PythonProcess target{*python, "print('ready', flush=True)\ninput()\n"};
  const auto result =
      run_tool({"record", "--functions", "-p", std::to_string(target.pid().value()), "--perf",
                deaf_perf(directory_), "-o", directory_ / "data", "--", "true"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("did not disable its events within"));
}

}  // namespace
}  // namespace pyinject::test
