// `why -- COMMAND`: the verdict on a command from its start to its end.
#include "procfs/stat.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/pty_process.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using base::Deadline;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class WhyLaunched : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const auto lack = bpf_engine_lacks(); !lack.empty()) {
      GTEST_SKIP() << lack;
    }
    if (!plain_interpreter(GetParam())) {
      GTEST_SKIP() << "not installed (scripts/pythons)";
    }
  }
  [[nodiscard]] static std::vector<std::string> why(const std::vector<std::string>& command) {
    std::vector<std::string> words{tool(), "why", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  [[nodiscard]] static std::vector<std::string> python(const std::string& program) {
    auto words = plain_interpreter(GetParam())->command;
    words.insert(words.end(), {"-c", program});
    return words;
  }
};
struct NameOfLaunched {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return "py3_" + std::to_string(info.param);
  }
};
COVER(WhyLaunched, 1);
INSTANTIATE_TEST_SUITE_P(Versions, WhyLaunched, testing::Values(12, 13, 14, 15), NameOfLaunched{});

TEST_P(WhyLaunched, JudgesTheCommandFromItsStartToItsEnd) {
  auto words = python(R"(
import time
def work():
    while time.process_time() < 1: pass
work()
print("the command's output")
)");
  words.insert(words.begin(), {"/bin/sh", "-c", R"("$@"; exit 3)", "sh"});
  const auto shown = run(why(words));
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  EXPECT_THAT(
      shown.out,
      AllOf(StartsWith("pid "), HasSubstr("work  <string>:4"),
            HasSubstr("\nnext: perf-pyinject why -o why.html -- /bin/sh -c '\"$@\"; exit 3' sh "),
            HasSubstr(" s after its start were not recorded\n"),
            Not(HasSubstr("the command's output\n"))));
  EXPECT_THAT(shown.err, AllOf(HasSubstr("the command's output\n"),
                               HasSubstr("the command: exit status 3\n")));
}

TEST_P(WhyLaunched, JudgesTheLastPythonThatAProcessExecutes) {
  const auto shown = run(why(python(R"(
import os, sys, time
def launcher():
    while time.process_time() < 0.7: pass
launcher()
code = """
import time
def work():
    end = time.process_time() + 1
    while time.process_time() < end: pass
work()
"""
os.execv(sys.executable, [sys.executable, "-c", code])
)")));
  EXPECT_EQ(shown.status, ExitStatus{}) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("work  <string>:5"), Not(HasSubstr("launcher  "))));
  EXPECT_THAT(shown.err, HasSubstr(" has executed another program: "));
}

TEST_P(WhyLaunched, EndsARecordingWhenTheProcessExecutesAnotherProgram) {
  ChildProcess python{WhyLaunched::python(R"(
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
def work():
    end = time.process_time() + 0.5
    while time.process_time() < end: pass
work()
os.execv("/bin/cat", ["cat"])
)")};
  const auto deadline = Deadline::after(kPatience);
  ASSERT_EQ(python.read_line(deadline), "ready");
  const auto pid = python.pid().value();
  ChildProcess shown{{tool(), "why", "-d", "600", std::to_string(pid)}};
  await(shown, "recording pid");
  python.write("\n");
  EXPECT_EQ(shown.wait(deadline), ExitStatus{}) << shown.err();
  EXPECT_THAT(shown.out(), AllOf(HasSubstr("CPU-bound"), HasSubstr("work  <string>:7"),
                                 HasSubstr("it executed another program after "),
                                 HasSubstr(fmt::format("perf-pyinject why -p {}\n", pid)),
                                 Not(HasSubstr("stacks"))));
}

TEST_P(WhyLaunched, EndsWithCtrlC) {
  PtyProcess shown{why(python(R"(
import os, time
input()
end = time.process_time() + 0.3
while time.process_time() < end: pass
print("command", os.getpid(), "has worked")
while True: pass
)"))};
  const auto deadline = Deadline::after(kPatience);
  ASSERT_TRUE(shown.read_until("recording pid", deadline)) << shown.screen();
  shown.type("\n");
  ASSERT_TRUE(shown.read_until("has worked", deadline)) << shown.screen();
  shown.type("\x03");
  EXPECT_EQ(shown.wait(deadline), ExitStatus{}) << shown.screen();
  const auto at = shown.screen().find("command ") + std::string_view{"command "}.size();
  const base::Pid pid{std::stoi(shown.screen().substr(at))};
  EXPECT_FALSE(procfs::read_stat(pid));
  EXPECT_THAT(shown.screen(), AllOf(HasSubstr(fmt::format("pid {}: ", pid.value())),
                                    HasSubstr("KeyboardInterrupt")));
}

// It may be saving its work.
TEST_P(WhyLaunched, DoesNotKillACommandThatGoesOnAfterCtrlC) {
  PtyProcess shown{why(python(R"(
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
input()
end = time.process_time() + 0.3
while time.process_time() < end: pass
print("command", os.getpid(), "has worked")
signal.pause()
)"))};
  const auto deadline = Deadline::after(kPatience);
  ASSERT_TRUE(shown.read_until("recording pid", deadline)) << shown.screen();
  shown.type("\n");
  ASSERT_TRUE(shown.read_until("has worked", deadline)) << shown.screen();
  shown.type("\x03");
  ASSERT_TRUE(shown.read_until("another signal leaves it running", deadline)) << shown.screen();
  shown.type("\x03");
  EXPECT_EQ(shown.wait(deadline), ExitStatus{}) << shown.screen();
  const auto at = shown.screen().find("command ") + std::string_view{"command "}.size();
  const base::Pid pid{std::stoi(shown.screen().substr(at))};
  EXPECT_THAT(shown.screen(),
              AllOf(HasSubstr(fmt::format("the command (pid {}) goes on", pid.value())),
                    HasSubstr(fmt::format("pid {}: ", pid.value()))));
  EXPECT_EQ(::kill(pid.value(), SIGKILL), 0) << "it runs";
}

TEST(WhyLaunchedTool, SaysThatACommandRunsNoPython) {
  if (const auto lack = bpf_engine_lacks(); !lack.empty()) {
    GTEST_SKIP() << lack;
  }
  const auto other = run({tool(), "why", "--", "/bin/true"});
  EXPECT_EQ(other.status, ExitStatus{125});
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, HasSubstr("the command ran no Python that could be recorded"));
  const auto none = run({tool(), "why", "--", "/no/such/command"});
  EXPECT_EQ(none.status, ExitStatus{127});
  EXPECT_THAT(none.err, HasSubstr("cannot run '/no/such/command'"));
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"why", "--"}, {"why", "1", "--", "true"}, {"why", "-d", "1", "--", "true"}}) {
    std::vector<std::string> argv{tool()};
    argv.insert(argv.end(), words.begin(), words.end());
    EXPECT_EQ(run(argv).status, ExitStatus{129});
  }
}

}  // namespace
}  // namespace pyinject::test
