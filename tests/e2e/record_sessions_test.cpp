// Several processes in one recording, several recordings of one process, and trampolines that are
// already on.
#include "e2e/perf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/record/plan.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace pyinject::test {
namespace {

using record::kFailure;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kServed{500};  // of CPU time

// Two versions; one has frame pointers.
class Sessions : public testing::Test {
 protected:
  void SetUp() override {
    if (!plain_interpreter(15) || !plain_interpreter(13)) {
      GTEST_SKIP() << "no CPython 3.15 or 3.13 (scripts/pythons)";
    }
    target_.emplace(*plain_interpreter(15));
  }
  [[nodiscard]] ServedTree& target() { return *target_; }
  [[nodiscard]] std::string in_directory(const std::string& name) const {
    return directory_ / name;
  }

 private:
  TempDir directory_;
  std::optional<ServedTree> target_;
};

TEST_F(Sessions, RecordLeavesOnWhatActivateSwitchedOn) {
  const auto on = run_tool({"activate", "-p", target().pid()});
  ASSERT_EQ(on.status, ExitStatus{}) << on.err;
  const std::string data = in_directory("perf.data");
  RunningRecord record{{"-p", target().pid(), "-F", "999", "-o", data}};
  target().serve(20, kServed);
  EXPECT_EQ(record.finish(), ExitStatus{});
  EXPECT_THAT(record.child().err(), HasSubstr("trampoline was already on by us; left on"));
  expect_right(count_named(read_samples("perf", data)));
  EXPECT_EQ(trampoline_of(target().pid()), "on by us");
  target().serve(10);
  EXPECT_EQ(run_tool({"deactivate", "-p", target().pid()}).status, ExitStatus{});
  EXPECT_EQ(trampoline_of(target().pid()), "off");
  target().serve(10);
  EXPECT_EQ(target().finish(), ExitStatus{});
}

TEST_F(Sessions, SecondRecordAtTheSameTimeIsRefused) {
  const std::string first = in_directory("first");
  const std::string second = in_directory("second");
  RunningRecord record{{"-p", target().pid(), "-F", "999", "-o", first}};
  target().serve(50);
  const auto refused = run_tool({"record", "-p", target().pid(), "-o", second, "--", "true"});
  EXPECT_EQ(refused.status.code, kFailure);
  EXPECT_THAT(refused.err, HasSubstr("another perf-pyinject (pid " +
                                     std::to_string(record.child().pid().value()) + ")"));
  EXPECT_THAT(refused.err, HasSubstr("(other_session)"));
  EXPECT_FALSE(std::filesystem::exists(second));
  EXPECT_EQ(trampoline_of(target().pid()), "on by us");
  target().serve(10, kServed);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  EXPECT_EQ(trampoline_of(target().pid()), "off");
  const auto named = count_named(read_samples("perf", first));
  EXPECT_GE(named.samples, 200U);
  expect_right(named, "the first recording was disturbed");
  target().serve(10);
}

// They resemble children of the target: processes of the same executable that started later and are
// on.
TEST_F(Sessions, LeaveOnWhatOthersSwitchedOn) {
  RunningRecord record{{"-p", target().pid(), "-o", in_directory("first")}};
  ServedTree recorded{*plain_interpreter(15)};
  ServedTree activated{*plain_interpreter(15)};
  ASSERT_EQ(run_tool({"activate", "-p", activated.pid()}).status, ExitStatus{});
  const std::string data = in_directory("second");
  RunningRecord other{{"-p", recorded.pid(), "-F", "999", "-o", data}};
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  EXPECT_EQ(trampoline_of(target().pid()), "off");
  EXPECT_EQ(trampoline_of(activated.pid()), "on by us");
  EXPECT_EQ(trampoline_of(recorded.pid()), "on by us");
  recorded.serve(20, kServed);
  EXPECT_EQ(other.finish(), ExitStatus{}) << other.child().err();
  EXPECT_EQ(trampoline_of(recorded.pid()), "off");
  EXPECT_EQ(trampoline_of(activated.pid()), "on by us");
  expect_right(count_named(read_samples("perf", data)));
}

TEST_F(Sessions, RecordTwoVersionsInOneFile) {
  ServedTree other{*plain_interpreter(13)};
  const std::string data = in_directory("perf.data");
  RunningRecord record{{"-p", target().pid() + "," + other.pid(), "-F", "999", "-o", data}};
  target().serve(20, kServed);
  other.serve(20, kServed);
  EXPECT_EQ(record.finish(), ExitStatus{});
  EXPECT_THAT(record.child().err(), HasSubstr("pid " + target().pid() + ": Python 3.15."));
  EXPECT_THAT(record.child().err(), HasSubstr("pid " + other.pid() + ": Python 3.13."));
  const auto samples = read_samples("perf", data);
  for (auto* one : {&target(), &other}) {
    const auto named = count_named(samples, one->pid());
    EXPECT_GE(named.samples, 100U);
    expect_right(named);
    EXPECT_EQ(trampoline_of(one->pid()), "off");
    one->serve(10);
  }
}

TEST_F(Sessions, OneBadProcessStopsAllUnlessLenient) {
  const ChildProcess bad{{"cat"}};
  const std::string pids = target().pid() + "," + std::to_string(bad.pid().value());
  const std::string data = in_directory("perf.data");
  const std::string reason = "pid " + std::to_string(bad.pid().value()) + ": ";
  const auto strict = run_tool({"record", "-p", pids, "-F", "999", "-o", data, "--", "true"});
  EXPECT_EQ(strict.status.code, kFailure);
  EXPECT_THAT(strict.err, HasSubstr(reason));
  EXPECT_THAT(strict.err, HasSubstr("(not_python)"));
  EXPECT_FALSE(std::filesystem::exists(data));
  EXPECT_EQ(trampoline_of(target().pid()), "off");

  RunningRecord lenient{{"--lenient", "-p", pids, "-F", "999", "-o", data}};
  target().serve(20, kServed);
  EXPECT_EQ(lenient.finish(), ExitStatus{});
  EXPECT_THAT(lenient.child().err(), HasSubstr("warning: " + reason));
  expect_right(count_named(read_samples("perf", data), target().pid()));
  EXPECT_EQ(trampoline_of(target().pid()), "off");
  target().serve(10);
}

// `perf NAME` runs perf-NAME.
class AsPerfCommand : public testing::TestWithParam<std::string> {};

TEST_P(AsPerfCommand, RecordsAndPassesTheStatusThrough) {
  const auto perf = find_perf(GetParam());
  const auto python = plain_interpreter(15);
  if (!perf || !python) {
    GTEST_SKIP() << "no " << GetParam() << " or no CPython 3.15 (scripts/pythons)";
  }
  ServedTree target{*python};
  const TempDir directory;
  const std::string data = directory / "perf.data";
  const char* const path = std::getenv("PATH");
  // perf also prepends its start directory to PATH: for the perfs in the roots, this directory has
  // programs for another libc.
  const std::string directory_of_tool = std::filesystem::path{tool()}.parent_path();
  ChildOptions options;
  options.env = {{"PATH", directory_of_tool + ":" + (path == nullptr ? "/usr/bin:/bin" : path)},
                 {"PERF", *perf}};
  RunningRecord record{{"-p", target.pid(), "-F", "999", "-o", data}, {*perf, "pyinject"}, options};
  target.serve(20, kServed);
  EXPECT_EQ(record.finish(7), (ExitStatus{.code = 7}));
  EXPECT_THAT(record.child().err(), HasSubstr("next: " + *perf + " report -i " + data));
  expect_right(count_named(read_samples(*perf, data)), record.child().err());
  EXPECT_EQ(trampoline_of(target.pid()), "off");
  target.serve(10);
}

INSTANTIATE_TEST_SUITE_P(Perfs, AsPerfCommand, testing::Values("perf", "perf6.12", "perf7"),
                         [](const auto& one) {
                           std::string text = one.param;
                           std::ranges::replace(text, '.', '_');
                           return text;
                         });

}  // namespace
}  // namespace pyinject::test
