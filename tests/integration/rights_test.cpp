// What the tool can do with which rights: as a user without capabilities, with exactly
// CAP_SYS_PTRACE, with CAP_PERFMON. These tests verify docs/rights.md.
#include "integration/rights.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "support/asleep.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// perf_event_open of one's own processes: permitted up to 2 according to the kernel's
// documentation; 3 is an extension of Debian and Android.
int perf_event_paranoid() {
  const auto level = base::read_file("/proc/sys/kernel/perf_event_paranoid", 64);
  return level ? base::parse_number<int>(base::trim(*level)).value_or(0) : 0;
}

bool perf_is_forbidden() { return perf_event_paranoid() > 2; }

TEST_F(Rights, OnesOwnProcessNeedsNone) {
  start(kUser);
  expect_works("");
  expect_private(map(), kUser);
}

TEST_F(Rights, OnesOwnProcessIsRecordedWithoutCapabilities) {
  start(kUser, kBusy);
  const auto recorded = record("");
  if (perf_is_forbidden()) {
    EXPECT_EQ(recorded.status, (ExitStatus{.code = 125}));
    EXPECT_THAT(recorded.err, AllOf(HasSubstr("perf_event_paranoid"), HasSubstr("CAP_PERFMON")));
    return;
  }
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(script(""), HasSubstr("py::leaf"));
  expect_private(data(), kUser);
  expect_private(map(), kUser);
}

// perf excludes the kernel, and with it every sample of a context switch.
TEST_F(Rights, OffCpuWarnsThatTheKernelIsExcluded) {
  if (perf_is_forbidden() || perf_event_paranoid() < 2) {
    GTEST_SKIP() << "kernel.perf_event_paranoid is not 2";
  }
  start(kUser, kBusy);
  const auto recorded = record("", {"-g", "--off-cpu"});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, AllOf(HasSubstr("--off-cpu: "), HasSubstr(" has no waits"),
                                  HasSubstr("kernel.perf_event_paranoid")));
  EXPECT_THAT(record("+perfmon", {"-g", "--off-cpu"}).err, Not(HasSubstr("--off-cpu: ")));
}

TEST_F(Rights, DumpsNeedNoneForOnesOwnProcess) {
  start(kUser, "import os\nprint('ready', flush=True)\nos.read(0, 1)\n");
  wait_until_asleep(python_->pid());
  const auto result = pyinject("", {"dump", "-p", pid_});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(": in read(fd 0: pipe:["),
                                HasSubstr("\n    <module>  <string>:3\n")));
}

TEST_F(Rights, DumpsWithAStopNeedNoneForOnesOwnProcess) {
  start(kUser, "import os\nprint('ready', flush=True)\nos.read(0, 1)\n");
  wait_until_asleep(python_->pid());
  const auto result = pyinject("", {"dump", "--stop", "-p", pid_});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\n  stopped for "), HasSubstr(": in read(fd 0: pipe:["),
                                HasSubstr("\n    <module>  <string>:3\n")));
}

TEST_F(Rights, DumpsWithAStopOfAnothersProcessNeedSysPtrace) {
  start(kOther, "import os\nprint('ready', flush=True)\nos.read(0, 1)\n");
  wait_until_asleep(python_->pid());
  const auto refused = pyinject("", {"dump", "--stop", "-p", pid_});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, AllOf(HasSubstr("cannot dump: "), HasSubstr("(no_permission)"),
                                 HasSubstr("CAP_SYS_PTRACE")));
  const auto result = pyinject("+sys_ptrace", {"dump", "--stop", "-p", pid_});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("\n  stopped for "), HasSubstr("\n    <module>  <string>:3\n")));
}

TEST_F(Rights, DumpsOfAnothersProcessNeedSysPtrace) {
  start(kOther, "import os\nprint('ready', flush=True)\nos.read(0, 1)\n");
  wait_until_asleep(python_->pid());
  const auto refused = pyinject("", {"dump", "-p", pid_});
  EXPECT_EQ(refused.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(refused.err, AllOf(HasSubstr("cannot dump: "), HasSubstr("(no_permission)"),
                                 HasSubstr("CAP_SYS_PTRACE")));
  const auto result = pyinject("+sys_ptrace", {"dump", "-p", pid_});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\n    <module>  <string>:3\n"));
}

TEST_F(Rights, AnothersProcessIsRefused) {
  start(kOther);
  const Untouched before{python_->pid()};
  for (const auto* const verb : {"activate", "deactivate", "record"}) {
    const auto result = pyinject("", {verb, "-p", pid_});
    EXPECT_EQ(result.status, (ExitStatus{.code = 125})) << verb;
    EXPECT_THAT(result.err, AllOf(HasSubstr("(no_permission)"), HasSubstr("CAP_SYS_PTRACE"),
                                  HasSubstr("it belongs to uid 65533")));
  }
  // Other capabilities do not help.
  EXPECT_THAT(pyinject("+perfmon,+dac_read_search", {"status", "-p", pid_}).out,
              HasSubstr("no_permission"));
  EXPECT_THAT(before.differences(), IsEmpty());
}

TEST_F(Rights, AnothersProcessNeedsExactlySysPtrace) {
  start(kOther);
  // CPython creates its map for its user only.
  expect_works("+sys_ptrace", "CAP_DAC_READ_SEARCH");
  expect_private(map(), kOther);
}

// /tmp is sticky, so the map cannot be moved.
TEST_F(Rights, AnothersStaleMapIsItsOwn) {
  start(kOther);
  const base::UniqueFd file{::open(map().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  ASSERT_TRUE(file.valid());
  ASSERT_EQ(::fchown(file.get(), kOther, kOther), 0);
  const std::array<timespec, 2> long_ago{};
  ASSERT_EQ(::futimens(file.get(), long_ago.data()), 0);
  const auto on = pyinject("+sys_ptrace", {"activate", "-p", pid_});
  EXPECT_EQ(on.status, ExitStatus{}) << on.err;
  EXPECT_THAT(on.err, HasSubstr("could not be moved away (Operation not permitted)"));
  expect_private(map(), kOther);
}

// The process is stopped when the request is made and keeps sleeping. The tool must see that
// without /proc/PID/syscall, which only the process's user may read.
TEST_F(Rights, SysPtraceIsEnoughForTheSecondLook) {
  start(kOther);
  const auto pid = python_->pid();
  python_->child().signal(SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid.value()), &info, WSTOPPED | WNOWAIT), 0);
  const auto before = times_switched(pid);
  auto argv = in_world(kUser, "+sys_ptrace");
  argv.insert(argv.end(), {directory_.here("perf-pyinject"), "activate", "-p", pid_});
  ChildProcess activation{argv};
  const auto deadline = Deadline::after(kPatience);
  while (times_switched(pid) == before && !deadline.expired() && activation.running()) {
    ::sched_yield();
  }
  python_->child().signal(SIGCONT);
  EXPECT_EQ(activation.wait(deadline), ExitStatus{}) << activation.err();
}

TEST_F(Rights, AnothersProcessIsRecordedWithSysPtraceAndPerfmon) {
  start(kOther, kBusy);
  const auto recorded = record("+sys_ptrace,+perfmon");
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, HasSubstr(" samples, "));
  // Without the map, only the call in progress at the attach has a name: from memory.
  EXPECT_LT(2 * times_in(script("+sys_ptrace"), "py::leaf"),
            times_in(script("+dac_read_search"), "py::leaf"));
  expect_private(data(), kUser);
}

// A variable enables the JIT, and only the process's user may read /proc/PID/environ.
TEST_F(Rights, SysPtraceIsEnoughToSeeTheJit) {
  interpreter_ = with_variable(interpreter_, "PYTHON_JIT=1");
  start(kOther,
        "import sys\n"
        "print('ready', flush=True)\n"
        "print(hasattr(sys, '_jit') and sys._jit.is_enabled(), flush=True)\n"
        "sys.stdin.read()\n");
  if (python_->read_line() != "True") {
    GTEST_SKIP() << interpreter_.name << " has no JIT";
  }
  EXPECT_THAT(pyinject("+sys_ptrace", {"status", "-p", pid_}).out, HasSubstr("jit_active"));
}

TEST_F(Rights, OnesOwnProcessThatIsNotDumpableNeedsSysPtrace) {
  start(kUser,
        "import ctypes, sys\n"
        "assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n"  // PR_SET_DUMPABLE
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n");
  EXPECT_THAT(
      pyinject("", {"status", "-p", pid_}).out,
      AllOf(HasSubstr("no_permission"), HasSubstr("not dumpable"), HasSubstr("CAP_SYS_PTRACE")));
  expect_works("+sys_ptrace");
}

// As an administrator would grant it to a group.
TEST_F(Rights, AFileCapabilityOfTheToolIsEnough) {
  const auto set = run({"setcap", "cap_sys_ptrace+ep", directory_.here("perf-pyinject")});
  if (set.status != ExitStatus{}) {
    GTEST_SKIP() << "no file capabilities here: " << set.err;
  }
  start(kOther);
  // The bounding set must contain it.
  auto argv = in_world(kUser, "");
  std::erase_if(argv, [](const std::string& word) { return word.starts_with("--bounding-set"); });
  argv.insert(argv.end(), {directory_.here("perf-pyinject"), "activate", "-p", pid_});
  const auto on = run(argv);
  EXPECT_EQ(on.status, ExitStatus{}) << on.err;
}

}  // namespace
}  // namespace pyinject::test
