// The names in a recording of a running program, with every interpreter and every perf.
#include "e2e/perf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/stand_in_perf.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pyinject::test {
namespace {

using testing::HasSubstr;

constexpr std::chrono::milliseconds kWork{500};  // of CPU time

void expect_names(const std::string& messages, const Named& named) {
  ASSERT_GE(named.samples, 100U) << messages;
  expect_right(named, messages);
}

class RecordedNames : public testing::TestWithParam<Interpreter> {};

TEST_P(RecordedNames, AreThereInEveryRecordingOfAProcessAndAfterItsEnd) {
  ServedTree target{GetParam()};
  const TempDir directory;
  const std::string first = directory / "first";
  const std::string second = directory / "second";
  target.serve(10);

  // Why that much CPU time: the request in progress at the attach has no complete chains. It is a
  // hundredth of the total, and the code between the leaves another one or two hundredths.
  RunningRecord once{{"-p", target.pid(), "-F", "999", "-o", first}};
  target.serve(20, kWork);
  ASSERT_EQ(once.finish(), ExitStatus{}) << once.child().err();
  EXPECT_EQ(trampoline_of(target.pid()), "off");
  const auto alive = count_named(read_samples("perf", first));
  expect_names(once.child().err(), alive);
  RecordProperty("whole_percent", std::to_string(alive.whole));
  RecordProperty("innermost_percent", std::to_string(alive.innermost));
  target.serve(10);

  RunningRecord again{{"-v", "-p", target.pid(), "-F", "999", "-o", second}};
  target.serve(20, kWork);
  EXPECT_EQ(again.finish(), ExitStatus{});
  EXPECT_THAT(again.child().err(), HasSubstr("trampoline on by store"));
  EXPECT_EQ(trampoline_of(target.pid()), "off");
  target.serve(10);
  EXPECT_EQ(target.finish(), ExitStatus{});

  expect_names(again.child().err(), count_named(read_samples("perf", second)));
  const auto dead = count_named(read_samples("perf", first));
  EXPECT_EQ(dead.samples, alive.samples);
  EXPECT_GE(dead.innermost, alive.innermost) << "names were lost with the process";
}

INSTANTIATE_TEST_SUITE_P(Pythons, RecordedNames,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});

// perf receives records other than samples only after an "enable" of all its events. Until it has
// been told to disable the sampling ones again, here 0.2 s of the target's time later, they sample.
TEST(RecordedNamesOf, ASlowPerfBeginWithTheRecording) {
  const auto python = plain_interpreter(15);
  if (!python) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  ServedTree target{*python};
  const TempDir directory;
  const auto slow = directory.file(
      "slow", fmt::format("worked() {{ cut -d ' ' -f 14 /proc/{}/stat; }}\n"
                          "while read -r line; do\n"
                          "  echo \"$line\"\n"
                          "  [ \"$line\" = enable ] && [ -z \"$enough\" ] || continue\n"
                          "  enough=$(($(worked) + 20))\n"
                          "  while [ \"$(worked)\" -lt \"$enough\" ]; do sleep 0.01; done\n"
                          "done\n",
                          target.pid()));
  const auto perf = handed_on_perf(directory, "sh " + slow);
  RunningRecord record{{"-p", target.pid(), "-F", "999", "--perf", perf, "-o", directory / "data"}};
  target.serve(200, kWork);
  ASSERT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  expect_names(record.child().err(), count_named(read_samples("perf", directory / "data")));
  EXPECT_EQ(target.finish(), ExitStatus{});
}

struct PerfAndPython {
  std::string perf;
  int minor = 0;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const PerfAndPython& parameter, std::ostream* stream) {
  *stream << parameter.perf << " on 3." << parameter.minor;
}

class OtherPerf : public testing::TestWithParam<PerfAndPython> {};

TEST_P(OtherPerf, NamesAll) {
  const auto& [name, minor] = GetParam();
  const auto perf = find_perf(name);
  const auto python = plain_interpreter(minor);
  if (!perf || !python) {
    GTEST_SKIP() << "no " << name << " or no CPython 3." << minor << " (scripts/pythons)";
  }
  ServedTree target{*python};
  const TempDir directory;
  const std::string data = directory / "perf.data";
  RunningRecord record{{"--perf", *perf, "-p", target.pid(), "-F", "999", "-o", data}};
  target.serve(20, kWork);
  ASSERT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  EXPECT_THAT(record.child().err(), HasSubstr(*perf + " report -i " + data));
  const auto named = count_named(read_samples(*perf, data));
  expect_names(record.child().err(), named);
  EXPECT_EQ(trampoline_of(target.pid()), "off");
  target.serve(10);
}

INSTANTIATE_TEST_SUITE_P(Perfs, OtherPerf,
                         testing::Values(PerfAndPython{"perf6.12", 13},
                                         PerfAndPython{"perf6.12", 15}, PerfAndPython{"perf7", 13},
                                         PerfAndPython{"perf7", 14}, PerfAndPython{"perf7", 15}),
                         [](const auto& one) {
                           std::string text =
                               one.param.perf + "_py3_" + std::to_string(one.param.minor);
                           std::ranges::replace(text, '.', '_');
                           return text;
                         });

}  // namespace
}  // namespace pyinject::test
