// How recordings end other than by the end of their command: the data is complete and nothing is
// left on.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/served_tree.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/pty_process.hpp"
#include "support/stand_in_perf.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <regex>
#include <utility>

namespace pyinject::test {
namespace {

using base::Deadline;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::milliseconds kEnough{300};  // of CPU time

// Starts a target before each test and records it at 999 Hz.
class Ending : public testing::TestWithParam<Interpreter> {
 protected:
  [[nodiscard]] std::vector<std::string> arguments() const {
    return {"-p", target_.pid(), "-F", "999", "-o", data()};
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] ServedTree& target() { return target_; }

  void expect_complete_data() {
    const auto named = count_named(read_samples("perf", data()));
    EXPECT_GE(named.samples, 100U);
    EXPECT_GE(named.innermost, kInLeaves);
  }
  void expect_off_and_well() {
    EXPECT_EQ(trampoline_of(target_.pid()), "off");
    target_.serve(10);
    EXPECT_EQ(target_.finish(), ExitStatus{});
  }

 private:
  TempDir directory_;
  ServedTree target_{GetParam()};
};

TEST_P(Ending, ByTheTargetsExitCompletesTheFile) {
  RunningRecord record{arguments()};
  target().serve(5, kEnough);
  EXPECT_EQ(target().finish(), ExitStatus{});
  EXPECT_EQ(record.wait(), ExitStatus{});
  EXPECT_THAT(record.child().err(), HasSubstr("the target exited before the end of the recording"));
  EXPECT_THAT(record.child().err(), Not(HasSubstr("error:")));
  expect_complete_data();
}

TEST_P(Ending, ByAKillOfTheTargetCompletesTheFile) {
  RunningRecord record{arguments()};
  target().serve(5, kEnough);
  target().process().child().signal(SIGKILL);
  EXPECT_EQ(record.wait(), ExitStatus{});
  EXPECT_THAT(record.child().err(), HasSubstr("the target exited before the end of the recording"));
  EXPECT_THAT(record.child().err(), Not(HasSubstr("error:")));
  expect_complete_data();
}

// Killed during the recording, by the kernel's OOM killer, for example.
TEST_P(Ending, ByAKillOfPerfKeepsTheSamplesUntilThenAndSwitchesOff) {
  const TempDir directory;
  auto all = arguments();
  all.insert(all.end(),
             {"--perf", stand_in_perf(directory, "echo $$ >" + directory.path().string() +
                                                     "/pid\nexec $PERF \"$@\"\n")});
  RunningRecord record{all};
  target().serve(5, kEnough);
  // perf writes the data of a 512 kB buffer when it is half full.
  const auto deadline = Deadline::after(kPatience);
  while (std::filesystem::file_size(data()) < 200'000 && !deadline.expired()) {
    target().serve(5);
  }
  const auto perf =
      base::parse_number<pid_t>(base::trim(base::read_file(directory / "pid").value_or("")));
  ASSERT_TRUE(perf);
  ASSERT_EQ(::kill(*perf, SIGKILL), 0);
  EXPECT_EQ(record.wait(), (ExitStatus{.code = 125}));
  EXPECT_THAT(record.child().err(), HasSubstr("error: perf record failed: killed by signal 9"));
  EXPECT_THAT(record.child().err(),
              HasSubstr("perf record died; " + data() + " has the samples written until then"));
  const auto named = count_named(read_samples("perf", data()));
  EXPECT_GE(named.samples, 10U);
  EXPECT_GE(named.innermost, kInLeaves);
  expect_off_and_well();
}

TEST_P(Ending, ByASignalToTheToolCompletesTheFileAndSwitchesOff) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    RunningRecord record{arguments()};
    target().serve(5, kEnough);
    record.child().signal(signal);
    EXPECT_EQ(record.wait(), (ExitStatus{.code = 128 + signal}));
    EXPECT_THAT(record.child().err(), HasSubstr("next: perf report -i " + data()));
    EXPECT_EQ(trampoline_of(target().pid()), "off") << signal;
    expect_complete_data();
  }
  expect_off_and_well();
}

// The command may be saving its work.
TEST_P(Ending, ByASignalDoesNotKillACommandThatIgnoresIt) {
  std::vector<std::string> argv{tool(), "record"};
  const auto all = arguments();
  argv.insert(argv.end(), all.begin(), all.end());
  argv.insert(argv.end(), {"--", "sh", "-c", "trap '' TERM; echo up; read line"});
  ChildProcess record{argv};
  const auto deadline = Deadline::after(kPatience);
  ASSERT_EQ(record.read_line(deadline), "up") << record.err();
  target().serve(5, kEnough);
  record.signal(SIGTERM);
  await(record, "another signal leaves it running");
  EXPECT_EQ(trampoline_of(target().pid()), "off");
  record.signal(SIGTERM);
  EXPECT_EQ(record.wait(deadline), (ExitStatus{.code = 128 + SIGTERM}));
  std::smatch pid;
  ASSERT_TRUE(std::regex_search(record.err(), pid, std::regex{"[(]pid ([0-9]+)[)] goes on"}));
  EXPECT_EQ(::kill(std::stoi(pid[1]), SIGKILL), 0) << "it runs";
  expect_complete_data();
  expect_off_and_well();
}

// Its terminal may be closed: nohup(1) is for that.
TEST_P(Ending, NotByAHangupThatNohupIgnores) {
  RunningRecord record{arguments(), {"nohup", tool()}};
  record.child().signal(SIGHUP);
  target().serve(5, kEnough);
  EXPECT_EQ(record.finish(7), (ExitStatus{.code = 7})) << record.child().err();
  expect_complete_data();
  expect_off_and_well();
}

TEST_P(Ending, ByClosingTheTerminalCompletesTheFileAndSwitchesOff) {
  std::vector<std::string> argv{tool(), "record"};
  const auto all = arguments();
  argv.insert(argv.end(), all.begin(), all.end());
  PtyProcess record{argv};
  ASSERT_TRUE(record.read_until("\x1b[Krecording ", Deadline::after(kPatience))) << record.screen();
  target().serve(5, kEnough);
  record.hang_up();
  EXPECT_EQ(record.wait(Deadline::after(kPatience)), (ExitStatus{.code = 128 + SIGHUP}));
  expect_complete_data();
  expect_off_and_well();
}

// Without a command, as users run it.
TEST_P(Ending, ByControlCOnATerminalCompletesTheFileAndSwitchesOff) {
  std::vector<std::string> argv{tool(), "record"};
  const auto all = arguments();
  argv.insert(argv.end(), all.begin(), all.end());
  PtyProcess record{argv};
  ASSERT_TRUE(record.read_until("\x1b[Krecording ", Deadline::after(kPatience))) << record.screen();
  target().serve(5, kEnough);
  record.type("\x03");
  EXPECT_EQ(record.wait(Deadline::after(kPatience)), (ExitStatus{.code = 128 + SIGINT}));
  EXPECT_THAT(record.screen(), HasSubstr("\r\x1b[K"));
  EXPECT_THAT(record.screen(), HasSubstr("next: perf report -i " + data()));
  expect_complete_data();
  expect_off_and_well();
}

std::vector<Interpreter> some_interpreters() {
  auto result = interpreters({.minor = 13, .root = true});
  std::ranges::move(interpreters({.minor = 15, .root = false}), std::back_inserter(result));
  return result;
}

INSTANTIATE_TEST_SUITE_P(Pythons, Ending, testing::ValuesIn(some_interpreters()),
                         InterpreterName{});
// Without some of these interpreters the suite tests less; RequiredInterpreters reports that.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Ending);

struct CommandsEnd {
  std::string name;
  std::string command;
  int status = 0;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const CommandsEnd& parameter, std::ostream* stream) { *stream << parameter.name; }

class CommandStatus : public testing::TestWithParam<CommandsEnd> {};

TEST_P(CommandStatus, PassesThroughAndNothingLiveIsWritten) {
  const auto python = plain_interpreter(15);
  if (!python) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  ServedTree target{*python};
  const TempDir directory;
  const auto record = run_tool({"record", "-p", target.pid(), "-o", directory / "perf.data", "--",
                                "sh", "-c", "sleep 0.6; " + GetParam().command});
  EXPECT_EQ(record.status, (ExitStatus{.code = GetParam().status})) << record.err;
  EXPECT_THAT(record.err, ContainsRegex("perf-pyinject: recorded [0-9]+\\.[0-9] s"));
  EXPECT_THAT(record.err, Not(HasSubstr("\x1b"))) << "stderr is not a terminal";
  EXPECT_THAT(record.err, Not(HasSubstr("\r")));
  EXPECT_THAT(record.err, Not(HasSubstr("recording ")));
  EXPECT_EQ(trampoline_of(target.pid()), "off");
}

INSTANTIATE_TEST_SUITE_P(Cases, CommandStatus,
                         testing::Values(CommandsEnd{"zero", "exit 0", 0},
                                         CommandsEnd{"seven", "exit 7", 7},
                                         CommandsEnd{"terminated", "kill -TERM $$", 143}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace pyinject::test
