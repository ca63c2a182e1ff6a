// A signal stops the tool while it keeps a target stopped.
#include "base/fault.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "support/checked_target.hpp"
#include "support/child_process.hpp"
#include "support/guards.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include <sched.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using base::Step;
using testing::HasSubstr;
using testing::Not;

ChildOptions with_fault(Step step, const char* action) {
  ChildOptions options;
  options.env["PYINJECT_TEST_FAULT"] = fmt::format("{}:{}", static_cast<int>(step), action);
  return options;
}

class StoppedTool : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> recording(const std::string& program,
                                                   const std::string& pid,
                                                   const std::vector<std::string>& command) const {
    std::vector<std::string> argv{program, "record", "-e", "cpu-clock", "-F",
                                  "99",    "-p",     pid,  "-o",        directory_ / "perf.data",
                                  "--"};
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }

  Guards guards_;
  TempDir directory_;
};

class StoppedInAStop : public StoppedTool, public testing::WithParamInterface<Step> {};

TEST_P(StoppedInAStop, IsKilledByItsGuardWhichSwitchesOff) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  RunOptions options;
  options.child = with_fault(GetParam(), "stop");
  const auto result = run(recording(faulty_tool(), target.pid_text(), {"true"}), options);
  EXPECT_EQ(result.status.signal, SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr("keeps a process stopped"));
  guards_.wait_for_orphans({target.pid()});
  target.expect_unharmed_and_off();
  target.expect_usable();
}

INSTANTIATE_TEST_SUITE_P(Cases, StoppedInAStop,
                         testing::Values(Step::kThreadSeized, Step::kAllStopped, Step::kOffStored),
                         [](const auto& step) {
                           return fmt::format("step{:02}", static_cast<int>(step.param));
                         });

// SIGTSTP has no effect in an orphaned process group, which a test may run in.
std::vector<std::string> in_own_process_group(std::vector<std::string> argv) {
  argv.insert(argv.begin(),
              {newest_interpreter().command.front(), "-c",
               "import os, sys; os.setpgid(0, 0); os.execv(sys.argv[1], sys.argv[1:])"});
  return argv;
}

TEST_F(StoppedTool, StopsAfterTheStopOnCtrlZAndGoesOnLater) {
  PythonProcess target{newest_interpreter(), R"(
import sys
print('ready', flush=True)
while sys.stdin.readline():
    print('right', flush=True)
)"};
  ChildProcess tool{in_own_process_group(
                        recording(faulty_tool(), std::to_string(target.pid().value()), {"true"})),
                    with_fault(Step::kAllStopped, "tstp")};
  if (!comes_to_job_control_stop(tool.pid())) {
    (void)tool.wait(Deadline::after(kPatience));
    FAIL() << "it was not stopped, but said: " << tool.err();
  }
  target.send_line("");
  EXPECT_EQ(target.read_line(), "right") << "the target is stopped with the tool";
  EXPECT_EQ(procfs::read_status(target.pid())->tracer.value(), 0);
  tool.signal(SIGCONT);
  EXPECT_EQ(tool.wait(Deadline::after(kPatience)), ExitStatus{}) << tool.err();
  EXPECT_THAT(tool.err(), Not(HasSubstr("guard")));
  EXPECT_EQ(Attach{}.detect(target.pid()).state, python::TrampolineState::kOff);
  target.send_line("");
  EXPECT_EQ(target.read_line(), "right");
}

// Another perf-pyinject that keeps the target stopped for 2 s, after which its guard kills it.
class OtherInstances : public StoppedTool {
 protected:
  static std::unique_ptr<ChildProcess> stop_target_by(std::vector<std::string> argv) {
    auto other =
        std::make_unique<ChildProcess>(std::move(argv), with_fault(Step::kAllStopped, "stop"));
    EXPECT_TRUE(comes_to_job_control_stop(other->pid())) << other->err();
    return other;
  }
};

TEST_F(OtherInstances, AreWaitedForAtTheBegin) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  const auto other = stop_target_by({faulty_tool(), "activate", "-p", target.pid_text()});
  const auto result = run(recording(tool(), target.pid_text(), {"true"}));
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("traced")));
  (void)other->wait(Deadline::after(kPatience));
  guards_.wait_for_orphans({target.pid()});
  target.expect_unharmed_and_off();
}

TEST_F(OtherInstances, AreWaitedForWhenARecordingSwitchesOff) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  ChildProcess recorder{
      recording(tool(), target.pid_text(), {"sh", "-c", "echo begun; exec sleep 60"})};
  ASSERT_EQ(recorder.read_line(Deadline::after(kPatience)), "begun") << recorder.err();
  const auto other = stop_target_by({faulty_tool(), "activate", "-p", target.pid_text()});
  recorder.signal(SIGTERM);
  EXPECT_EQ(recorder.wait(Deadline::after(kPatience)), (ExitStatus{.code = 128 + SIGTERM}))
      << recorder.err();
  (void)other->wait(Deadline::after(kPatience));
  guards_.wait_for_orphans({target.pid()});
  target.expect_unharmed_and_off();
}

TEST_F(OtherInstances, BegunTogetherAreNotRefused) {
  CheckedTarget target{newest_interpreter(), Doing::kComputes};
  for (const char* verb : {"activate", "deactivate", "activate", "deactivate"}) {
    std::vector<std::unique_ptr<ChildProcess>> together;
    for (int i = 0; i < 4; ++i) {
      together.push_back(std::make_unique<ChildProcess>(
          std::vector<std::string>{tool(), verb, "-p", target.pid_text()}));
    }
    for (const auto& one : together) {
      EXPECT_EQ(one->wait(Deadline::after(kPatience)), ExitStatus{}) << verb << ": " << one->err();
    }
  }
  target.expect_unharmed_and_off();
}

}  // namespace
}  // namespace pyinject::test
