#include "support/snapshot.hpp"

#include "pyinject/base/error.hpp"
#include "support/asleep.hpp"
#include "support/python_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>

namespace pyinject::test {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::IsEmpty;

// Executes each line that it reads and acknowledges it.
constexpr auto kProgram =
    "import mmap, os, signal, sys, threading\n"
    "print('ready', flush=True)\n"
    "for line in iter(sys.stdin.readline, ''):\n"
    "    exec(line)\n"
    "    print('done', flush=True)\n";

class SnapshotTest : public testing::Test {
 protected:
  void SetUp() override {
    if (interpreters().empty()) {
      GTEST_SKIP() << "no interpreter found";
    }
    python_.emplace(interpreters().front(), kProgram);
    act("pass");
    before_ = take_snapshot(python_->pid());
  }
  void act(const std::string& statement) {
    python_->send_line(statement);
    ASSERT_EQ(python_->read_line(), "done");
    wait_until_asleep(python_->pid());
  }
  std::vector<std::string> changes(Comparison what = {.maps = false}) {
    return differences(before_, take_snapshot(python_->pid()), what);
  }

  std::optional<PythonProcess> python_;
  Snapshot before_;
};

TEST_F(SnapshotTest, SeesNoChangeOfAnUntouchedProcess) {
  EXPECT_THAT(changes({}), IsEmpty());
  EXPECT_FALSE(before_.threads.empty());
  EXPECT_GE(before_.fds.size(), 3U);
  EXPECT_FALSE(before_.maps.empty());
}

TEST_F(SnapshotTest, SeesFileDescriptors) {
  act("os.dup2(os.open('/dev/null', os.O_RDONLY), 99)");
  EXPECT_THAT(changes(), Contains(ContainsRegex("fd 99 opened: .*/dev/null")));
  EXPECT_THAT(changes({.fds = false, .maps = false}), IsEmpty());
  before_ = take_snapshot(python_->pid());
  act("os.close(99)");
  EXPECT_THAT(changes(), Contains(ContainsRegex("fd 99 closed: .*/dev/null")));
}

TEST_F(SnapshotTest, SeesSignals) {
  act("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])");
  EXPECT_THAT(changes(), Contains(ContainsRegex("thread [0-9]+: SigBlk .* was")));
  act("os.kill(os.getpid(), signal.SIGUSR1)");
  EXPECT_THAT(changes(), Contains(ContainsRegex("process: ShdPnd .* was")));
  act("signal.signal(signal.SIGUSR2, signal.SIG_IGN)");
  EXPECT_THAT(changes(), Contains(ContainsRegex("process: SigIgn .* was")));
  act("signal.signal(signal.SIGUSR2, print)");
  EXPECT_THAT(changes(), Contains(ContainsRegex("process: SigCgt .* was")));
}

TEST_F(SnapshotTest, SeesThreadsAndMappings) {
  const std::string birth = "threading.Thread(target=threading.Event().wait, daemon=True).start()";
  act(birth);  // for the first thread, glibc installs a handler for a signal of its own
  before_ = take_snapshot(python_->pid());
  act(birth);
  EXPECT_THAT(changes(), Contains(ContainsRegex("thread [0-9]+ born")));
  EXPECT_THAT(changes({.threads = false, .maps = false}), IsEmpty());
  act("page = mmap.mmap(-1, 1 << 16, prot=mmap.PROT_READ | mmap.PROT_EXEC)");
  EXPECT_THAT(changes({}), Contains(ContainsRegex("mapping .* new: r-xs /dev/zero")));
}

TEST_F(SnapshotTest, SeesStopsAndTracers) {
  const pid_t pid = python_->pid().value();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  EXPECT_THAT(changes(), Contains(ContainsRegex("State T \\(stopped\\) was runs")));
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr), 0);
  EXPECT_THAT(changes(), Contains(ContainsRegex("TracerPid [0-9]+ was 0")));
  ASSERT_EQ(::kill(pid, SIGCONT), 0);
}

TEST_F(SnapshotTest, CannotBeTakenOfAProcessThatHasGone) {
  (void)python_->terminate();
  EXPECT_THROW((void)take_snapshot(python_->pid()), base::Error);
}

}  // namespace
}  // namespace pyinject::test
