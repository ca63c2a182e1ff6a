// How recordings of calls end, or fail to start: nothing is left in tracefs, and the target still
// works.
#include "e2e/counted_calls.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/pid.hpp"
#include "support/child_process.hpp"
#include "support/guards.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>

namespace pyinject::test {
namespace {

using testing::HasSubstr;

TEST_P(FunctionCallsCounted, EndBySignalsInGoodOrder) {
  Counted target{GetParam()};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
    EXPECT_EQ(events_of(record.child().pid()).size(), 2U);
    target.call("leaves", 1000);
    record.child().signal(signal);
    EXPECT_EQ(record.wait(), (ExitStatus{.code = 128 + signal})) << record.child().err();
    EXPECT_TRUE(events_of(record.child().pid()).empty()) << signal;
    expect_calls(calls_in(data()), "leaf", 1000);
  }
  target.expect_well();
}

TEST_P(FunctionCallsCounted, LeaveNothingBehindAfterAKilledTool) {
  const Guards guards;
  Counted target{GetParam()};
  base::Pid killed;
  {
    RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
    killed = record.child().pid();
    EXPECT_EQ(events_of(killed).size(), 2U);
    target.call("leaves", 1000);
    record.child().signal(SIGKILL);
    EXPECT_EQ(record.wait(), (ExitStatus{.code = 0, .signal = SIGKILL}));
    record.child().close_stdin();
  }
  guards.wait_for_orphans({target.id()});  // perf, and the guard
  expect_calls(calls_in(data()), "leaf", 1000);
  target.expect_well();
  EXPECT_TRUE(events_of(killed).empty());
}

TEST_P(FunctionCallsCounted, LeaveNothingBehindTheToolAfterOneKilledAfterItsGuard) {
  be_alone();
  const Guards guards;
  Counted target{GetParam()};
  base::Pid killed;
  {
    RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
    killed = record.child().pid();
    EXPECT_EQ(events_of(killed).size(), 2U);
    target.call("leaves", 1000);
    const auto guard = guard_of(killed);
    ASSERT_TRUE(guard);
    ::kill(guard->pid.value(), SIGKILL);
    EXPECT_TRUE(guard->ends());
    record.child().signal(SIGKILL);
    EXPECT_EQ(record.wait(), (ExitStatus{.code = 0, .signal = SIGKILL}));
    record.child().close_stdin();
  }
  guards.wait_for_orphans({target.id()});  // perf completes its file
  expect_calls(calls_in(data()), "leaf", 1000);
  target.expect_well();
  // Even a recording that fails removes them: its target is gone.
  EXPECT_EQ(events_of(killed).size(), 2U);
  auto next = with_tracefs({tool(), "record"});
  const auto more = arguments(target.pid());
  next.insert(next.end(), more.begin(), more.end());
  EXPECT_EQ(run(next).status, (ExitStatus{.code = 125}));
  EXPECT_TRUE(events_of(killed).empty());
}

TEST_P(FunctionCallsCounted, TargetMayEndFirst) {
  Counted target{GetParam()};
  RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
  target.call("leaves", 100);
  target.expect_well();
  EXPECT_EQ(record.wait(), ExitStatus{});
  EXPECT_THAT(record.child().err(), HasSubstr("the target exited before the end of the recording"));
  EXPECT_TRUE(events_of(record.child().pid()).empty());
  expect_calls(calls_in(data()), "leaf", 110);
}

TEST_P(FunctionCallsCounted, NeedTracefs) {
  Counted target{GetParam()};
  auto words =
      beside("umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null", {tool(), "record"});
  const auto more = arguments(target.pid());
  words.insert(words.end(), more.begin(), more.end());
  const auto result = run(words);
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(result.err, HasSubstr("mount -t tracefs nodev /sys/kernel/tracing"));
  EXPECT_FALSE(std::filesystem::exists(data()));
  target.expect_well();
}

class FunctionCallsRefused : public FunctionCalls {};

TEST_P(FunctionCallsRefused, SayThatTheBuildHasNoProbes) {
  Counted target{GetParam()};
  const auto result = run_tool({"record", "--functions", "-p", target.pid(), "-o", data()});
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("(no_function_probes)"));
  EXPECT_THAT(result.err, HasSubstr("perf-pyinject record without --functions"));
  EXPECT_FALSE(std::filesystem::exists(data()));
  target.expect_well();
}

INSTANTIATE_TEST_SUITE_P(Pythons, FunctionCallsRefused,
                         testing::ValuesIn(interpreters({.probes = false})), InterpreterName{});

TEST(FunctionsVerb, RefusesOtherFiles) {
  const TempDir directory;
  const auto result = run_tool({"functions", "-i", directory.file("perf.data", "no recording")});
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("it is not a perf.data"));
}

}  // namespace
}  // namespace pyinject::test
