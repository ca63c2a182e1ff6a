// The guard process: when it exists, what ends it, what it does.
#include "base/fault.hpp"
#include "pyinject/record/plan.hpp"
#include "support/checked_target.hpp"
#include "support/child_process.hpp"
#include "support/guards.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include <sys/wait.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using base::Step;
using testing::HasSubstr;

class GuardTest : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> start_recording(const std::string& pids) {
    return std::make_unique<ChildProcess>(std::vector<std::string>{
        test::tool(), "record", "-e", "cpu-clock", "-F", "99", "-p", pids, "-o",
        directory_ / "perf.data", "--", "sh", "-c", "echo begun; exec sleep 60"});
  }
  // Returns once the events are enabled.
  std::unique_ptr<ChildProcess> begin_recording(const std::string& pids) {
    auto tool = start_recording(pids);
    EXPECT_EQ(tool->read_line(Deadline::after(kPatience)), "begun") << tool->err();
    return tool;
  }

  static RunResult tool(std::vector<std::string> arguments, const std::string& fault) {
    arguments.insert(arguments.begin(), faulty_tool());
    RunOptions options;
    options.child.env["PYINJECT_TEST_FAULT"] = fault;
    return run(arguments, options);
  }

  Guards guards_;
  TempDir directory_;
};

TEST_F(GuardTest, IsThereForASessionAndNoLonger) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  const auto tool = begin_recording(target.pid_text());
  const auto guard = test::guard_of(tool->pid());
  ASSERT_TRUE(guard);
  EXPECT_NE(::getsid(guard->pid.value()), ::getsid(0)) << "signals of the terminal would reach it";
  EXPECT_FALSE(guard->ended());
  tool->signal(SIGTERM);
  EXPECT_EQ(tool->wait(Deadline::after(kPatience)), (ExitStatus{.code = 128 + SIGTERM}));
  EXPECT_TRUE(guard->ended()) << "it outlives a session that ended normally";
  target.expect_unharmed_and_off();
}

TEST_F(GuardTest, SwitchesOffWhenTheToolIsKilledWhateverSignalsItGot) {
  CheckedTarget first{newest_interpreter(), Doing::kComputes};
  CheckedTarget second{newest_interpreter(), Doing::kReads};
  const auto tool = begin_recording(first.pid_text() + "," + second.pid_text());
  const auto guard = test::guard_of(tool->pid());
  ASSERT_TRUE(guard);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP}) {
    ::kill(guard->pid.value(), signal);
  }
  EXPECT_FALSE(guard->ended());
  tool->signal(SIGKILL);
  EXPECT_TRUE(guard->ends());
  first.expect_unharmed_and_off();
  second.expect_unharmed_and_off();
  first.expect_usable();
}

TEST_F(GuardTest, SwitchesOffChildrenThatATargetForked) {
  const auto child_of = R"(
import os, sys
print('ready', flush=True)
sys.stdin.readline()
pid = os.fork()
if pid == 0:
    while True: sum(range(1000))
print(pid, flush=True)
sys.stdin.readline()
os.kill(pid, 9)
)";
  PythonProcess parent{newest_interpreter(), child_of};
  const auto tool = begin_recording(std::to_string(parent.pid().value()));
  parent.send_line("fork");
  const base::Pid child{static_cast<pid_t>(std::stoi(parent.read_line()))};
  Attach attach;
  EXPECT_EQ(attach.detect(child).state, python::TrampolineState::kOnByUs);
  tool->signal(SIGKILL);
  const auto ended = tool->wait(Deadline::after(kPatience));
  EXPECT_EQ(ended->signal, SIGKILL);
  guards_.wait_for_guards();
  EXPECT_EQ(attach.detect(parent.pid()).state, python::TrampolineState::kOff);
  EXPECT_EQ(attach.detect(child).state, python::TrampolineState::kOff);
  parent.send_line("end");
  EXPECT_EQ(parent.child().wait(Deadline::after(kPatience)), ExitStatus{});
}

// The payload runs inside the program's own audit hook, which waits for a line.
constexpr const char* kSlowHook = R"(
import os, sys
def hook(event, args):
    if event == 'exec':
        print('in hook', flush=True)
        os.read(0, 1)
sys.addaudithook(hook)
print('ready', flush=True)
while os.read(0, 1):
    print('right', sys.is_stack_trampoline_active(), flush=True)
)";

TEST_F(GuardTest, WaitsForARequestThatIsRunning) {
  PythonProcess target{newest_interpreter(), kSlowHook};
  const auto tool = start_recording(std::to_string(target.pid().value()));
  ASSERT_EQ(target.read_line(kPatience), "in hook");
  tool->signal(SIGKILL);
  (void)tool->wait(Deadline::after(kPatience));
  const auto guard = test::guard_of(base::Pid{::getpid()});
  ASSERT_TRUE(guard);
  target.send_line("");  // the payload continues and activates
  EXPECT_TRUE(guard->ends());
  guards_.wait_for_guards();
  EXPECT_EQ(Attach{}.detect(target.pid()).state, python::TrampolineState::kOff);
  target.send_line("");
  EXPECT_EQ(target.read_line(), "right False");
}

TEST_F(GuardTest, FinishesAKilledActivateAndAKilledDeactivate) {
  CheckedTarget first{newest_interpreter(), Doing::kComputes};
  CheckedTarget second{newest_interpreter(), Doing::kComputes};
  const auto both = first.pid_text() + "," + second.pid_text();
  const auto activate = tool({"activate", "-p", both},
                             fmt::format("{}.2:kill", static_cast<int>(Step::kEffectAwaited)));
  EXPECT_EQ(activate.status.signal, SIGKILL) << activate.err;
  guards_.wait_for_guards();
  first.expect_unharmed_and_off();
  second.expect_unharmed_and_off();

  EXPECT_EQ(run({faulty_tool(), "activate", "-p", both}).status, ExitStatus{});
  const auto deactivate =
      tool({"deactivate", "-p", both}, fmt::format("{}:kill", static_cast<int>(Step::kOffStored)));
  EXPECT_EQ(deactivate.status.signal, SIGKILL) << deactivate.err;
  guards_.wait_for_guards();
  first.expect_unharmed_and_off();
  second.expect_unharmed_and_off();
}

TEST_F(GuardTest, LeavesOnWhatAnotherActivateSwitchedOn) {
  CheckedTarget first{newest_interpreter(), Doing::kComputes};
  ChildOptions stops;
  stops.env["PYINJECT_TEST_FAULT"] = fmt::format("{}:stop", static_cast<int>(Step::kGuardTold));
  ChildProcess killed{{faulty_tool(), "activate", "-p", first.pid_text()}, stops};
  ASSERT_TRUE(comes_to_job_control_stop(killed.pid())) << killed.err();
  CheckedTarget later{newest_interpreter(), Doing::kComputes};  // runs the same executable
  EXPECT_EQ(run({test::tool(), "activate", "-p", later.pid_text()}).status, ExitStatus{});
  killed.signal(SIGKILL);
  (void)killed.wait(Deadline::after(kPatience));
  guards_.wait_for_guards();
  EXPECT_EQ(Attach{}.detect(later.pid()).state, python::TrampolineState::kOnByUs);
  first.expect_unharmed_and_off();
}

// The guard also holds the stderr open until it exits.
TEST_F(GuardTest, EndsWithADeactivateThatIsRefusedAndLeavesTheTargetAlone) {
  CheckedTarget target{newest_interpreter(), Doing::kReads};
  const auto recorder = begin_recording(target.pid_text());
  const Untouched before{target.pid()};
  ChildProcess deactivate{
      {"sh", "-c", "exec \"$0\" \"$@\" 2>&1", test::tool(), "deactivate", "-p", target.pid_text()}};
  std::string said;
  while (const auto line = deactivate.read_line(Deadline::after(kPatience))) {
    said += *line + "\n";
  }
  EXPECT_EQ(deactivate.wait(Deadline::after(kPatience)), (ExitStatus{.code = record::kFailure}));
  EXPECT_THAT(said, HasSubstr("(other_session)"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_THAT(before.differences(), testing::IsEmpty());
  recorder->signal(SIGTERM);
  EXPECT_EQ(recorder->wait(Deadline::after(kPatience)), (ExitStatus{.code = 128 + SIGTERM}));
  target.expect_unharmed_and_off();
}

TEST_F(GuardTest, LeavesOnWhatTheUserHadActivated) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  EXPECT_EQ(run({faulty_tool(), "activate", "-p", target.pid_text()}).status, ExitStatus{});
  const auto tool = begin_recording(target.pid_text());
  tool->signal(SIGKILL);
  (void)tool->wait(Deadline::after(kPatience));
  guards_.wait_for_guards();
  EXPECT_EQ(Attach{}.detect(target.pid()).state, python::TrampolineState::kOnByUs);
}

}  // namespace
}  // namespace pyinject::test
