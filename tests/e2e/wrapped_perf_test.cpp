// perf's own commands while the target's trampoline is on: their output, and what is left
// afterwards.
#include "base/file.hpp"
#include "e2e/served_tree.hpp"
#include "support/find_perf.hpp"
#include "support/patience.hpp"
#include "support/pty_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

namespace pyinject::test {
namespace {

using base::Deadline;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// It sleeps often; <module> and main were entered before the attach.
constexpr const char* kNaps = R"(
import time
def nap():
    time.sleep(0.001)
def rest():
    nap()
def main():
    print('ready', flush=True)
    while True:
        rest()
main()
)";

class WrappedPerf : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    python_ = plain_interpreter(GetParam());
    if (!python_) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

 private:
  TempDir folder_;
  std::optional<Interpreter> python_;
};

// Uses frame pointers.
class LiveView : public WrappedPerf {
 protected:
  // Runs until the target's functions have names.
  void expect_named_by_trace(PythonProcess& target) {
    const auto pid = std::to_string(target.pid().value());
    ChildProcess trace{{tool(), "trace", "--call-graph", "fp", "-o", path("trace"), "-e",
                        "clock_nanosleep", "-p", pid}};
    const auto deadline = Deadline::after(kPatience);
    std::string text;
    while (text.find("py::rest:") == std::string::npos && trace.running() && !deadline.expired()) {
      (void)trace.wait(Deadline::after(std::chrono::milliseconds{100}));
      text = base::read_file(path("trace")).value_or("");
    }
    EXPECT_NE(text.find("py::nap:"), std::string::npos) << trace.err();
    EXPECT_NE(text.find("py::rest:"), std::string::npos);
    trace.signal(SIGINT);
    EXPECT_TRUE(trace.wait(Deadline::after(kPatience))) << trace.err();
    EXPECT_EQ(trampoline_of(pid), "off");
    target.expect_alive();
  }
};

TEST_P(LiveView, TraceShowsPythonFunctions) {
  PythonProcess target{python(), kNaps};
  expect_named_by_trace(target);
}

// perf looks for its map in a directory other than the one CPython writes it to.
TEST_P(LiveView, TraceShowsThoseOfAChrootedTarget) {
  const auto chrooted = find_interpreter({.minor = GetParam(), .root = true, .whole_matrix = true});
  if (!chrooted) {
    GTEST_SKIP() << "no chrooted CPython 3." << GetParam() << " (root, scripts/pythons)";
  }
  PythonProcess target{*chrooted, kNaps};
  const auto map = fmt::format("/tmp/perf-{}.map", target.pid().value());
  expect_named_by_trace(target);
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(map)));
  EXPECT_THAT(base::read_file(map).value_or(""), HasSubstr("py::nap:"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, LiveView, testing::Values(15), testing::PrintToStringParamName());

class RecordingVerb : public WrappedPerf {};

TEST_P(RecordingVerb, SchedRecordHasWholeStacks) {
  PythonProcess target{python(), kNaps};
  const auto pid = std::to_string(target.pid().value());
  const auto data = path("data");
  const auto graph = GetParam() == 15 ? "--call-graph=fp" : "--call-graph=dwarf,16384";
  // Waits until it has slept a hundred times.
  const auto naps = fmt::format(
      "slept() {{ sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/{}/status; }}\n"
      "enough=$(($(slept) + 100))\n"
      "until [ $(slept) -ge $enough ]; do sleep 0.02; done\n",
      pid);
  const auto recorded =
      run_tool({"sched", "record", graph, "-p", pid, "-o", data, "--", "sh", "-c", naps});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, HasSubstr("next: perf report -i " + data));
  EXPECT_EQ(trampoline_of(pid), "off");
  target.expect_alive();
  EXPECT_EQ(target.terminate().signal, SIGTERM);
  const auto script = run({"perf", "script", "-i", data, "-F", "event,ip,sym"});
  EXPECT_NE(script.out.find("sched:sched_switch"), std::string::npos);
  const auto nap = script.out.find("py::nap:");
  ASSERT_NE(nap, std::string::npos) << recorded.err;
  EXPECT_THAT(
      script.out.substr(nap, script.out.find("\n\n", nap) - nap),
      testing::AllOf(HasSubstr("py::rest:"), HasSubstr("py::main:"), HasSubstr("py::<module>:")));
  const auto timehist = run({"perf", "sched", "timehist", "-i", data});
  EXPECT_EQ(timehist.status, ExitStatus{}) << timehist.err;
}

INSTANTIATE_TEST_SUITE_P(Pythons, RecordingVerb, testing::Values(13, 15),
                         testing::PrintToStringParamName());

TEST(WrappedPerfRefuses, WhatItCannotActivate) {
  const auto none = run_tool({"trace", "-p", std::to_string(::getpid())});
  EXPECT_EQ(none.status, ExitStatus{.code = 125}) << none.err;
  EXPECT_THAT(none.err, HasSubstr("(not_python)"));
  const auto unknown = run_tool({"stat", "-p", "1"});
  EXPECT_EQ(unknown.status, ExitStatus{.code = 129});
  EXPECT_THAT(unknown.err,
              HasSubstr("record, top, why, dump, report, flamegraph, export, serve, trace, sched"));
}

}  // namespace
}  // namespace pyinject::test
