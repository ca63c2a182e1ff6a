// The built tool's messages when perf or the disk fails, or the target exits.
#include "base/file.hpp"
#include "integration/cli_bad_input.hpp"
#include "integration/detection.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "support/asleep.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/snapshot.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using base::Pid;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(CliBadInput, AMissingPerfIsReported) {
  PythonProcess python{any(), kIdle};
  const TempDir empty;
  RunOptions options;
  options.child.env["PATH"] = empty.path();
  options.child.unset = {"PERF"};
  wait_until_asleep(python.pid());
  const auto before = take_snapshot(python.pid());
  // The command does not need PATH.
  expect_failure(
      run(record_argv(python.pid(), {"--recorder", "perf"}, {tool(), "--version"}), options),
      {"perf", "install linux-perf", "--perf PATH"});
  EXPECT_THAT(differences(before, take_snapshot(python.pid())), IsEmpty());
}

TEST_F(CliBadInput, PerfFailsAtOnce) {
  PythonProcess python{any(), kIdle};
  const TempDir bin;
  const auto perf = bin.file("perf",
                             "#!/bin/sh\n"
                             "case $1 in record) echo 'out of order' >&2; exit 3;; esac\n"
                             "exec perf \"$@\"\n");
  std::filesystem::permissions(perf, std::filesystem::perms::owner_all);
  wait_until_asleep(python.pid());
  const auto before = take_snapshot(python.pid());
  expect_failure(run(record_argv(python.pid(), {"--perf", perf, "--call-graph", "fp"})),
                 {"perf record failed: exit status 3", "perf: out of order"});
  EXPECT_THAT(differences(before, take_snapshot(python.pid())), IsEmpty());
}

TEST_F(CliBadInput, AnOutputThatCannotBeWrittenIsReported) {
  PythonProcess python{any(), kAnswers};
  const auto output = directory_ / "missing/data";
  const auto result = run({tool(), "record", "-p", say(python.pid()), "-o", output, "--", "true"});
  expect_failure(result, {"perf record failed", output, "No such file or directory"});
  expect_as_before(python);
}

TEST_F(CliBadInput, AFullDiskIsReported) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  PythonProcess python{any(), kAnswers};
  std::vector<std::string> argv{"unshare",
                                "--mount",
                                "sh",
                                "-c",
                                R"(mount -t tmpfs -o size=64k none "$0" && exec "$@")",
                                directory_.path()};
  const auto record =
      record_argv(python.pid(), {"--call-graph", "fp", "-F", "4999"}, {"sleep", "600"});
  argv.insert(argv.end(), record.begin(), record.end());
  expect_failure(run(argv), {"no space left"});
  expect_as_before(python);
}

// Stays in read(2) with the GIL held, so that no request is carried out.
constexpr const char* kHoldsGil = R"(
import ctypes
libc = ctypes.PyDLL(None)
buffer = ctypes.create_string_buffer(1)
print('ready', flush=True)
libc.read(0, buffer, 1)
)";

// Waits until PID sleeps in its read(2).
bool comes_to_rest(Pid pid) {
  const auto wanted = std::to_string(SYS_read) + " 0x0 ";
  const auto deadline = Deadline::after(kPatience);
  while (!deadline.expired()) {
    const auto stat = procfs::read_stat(pid);
    const auto call = base::read_file("/proc/" + say(pid) + "/syscall").value_or("");
    if (stat && stat->state == 'S' && call.starts_with(wanted)) {
      return true;
    }
    ::sched_yield();
  }
  return false;
}

TEST_F(CliBadInput, TheTargetExitsDuringTheAttach) {
  PythonProcess python{any(), kHoldsGil};
  ASSERT_TRUE(comes_to_rest(python.pid()));
  const auto before = times_switched(python.pid());
  // With an explicit call graph, nothing touches the target before the activation.
  ChildProcess record{record_argv(python.pid(), {"--call-graph", "fp"})};
  const auto deadline = Deadline::after(kPatience);
  while (times_switched(python.pid()) == before && !deadline.expired() && record.running()) {
    ::sched_yield();
  }
  ASSERT_NE(times_switched(python.pid()), before) << "never touched: " << record.err();
  python.child().signal(SIGKILL);
  const auto status = record.wait(Deadline::after(kPatience));
  ASSERT_TRUE(status);
  expect_failure({*status, record.out(), record.err()},
                 {"pid " + say(python.pid()) + ": the process exited", "(exited)"});
}

TEST_F(CliBadInput, TheTargetExitsDuringTheRecording) {
  PythonProcess python{any(), kAnswers};
  const auto result = run(record_argv(
      python.pid(), {}, {"sh", "-c", "kill -9 " + say(python.pid()) + "; exec sleep 600"}));
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the target exited before the end of the recording"));
  EXPECT_THAT(result.err, HasSubstr("next: perf report -i " + data()));
  EXPECT_THAT(result.err, Not(HasSubstr("error: ")));
  EXPECT_EQ(run({"perf", "script", "-i", data(), "-F", "ip,sym"}).status, ExitStatus{});
}

// Two targets, so that the end of the command ends the recording.
TEST_F(CliBadInput, TheTargetExitsBeforeDeactivation) {
  PythonProcess stays{any(), kAnswers};
  PythonProcess goes{any(), kAnswers};
  const auto result = run(record_argv(stays.pid(), {"-p", say(goes.pid())},
                                      {"sh", "-c", "kill -9 " + say(goes.pid()) + "; exit 7"}));
  EXPECT_EQ(result.status, ExitStatus{.code = 7}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("next: perf report -i " + data()));
  EXPECT_THAT(result.err, Not(HasSubstr("error: ")));
  EXPECT_EQ(run({"perf", "script", "-i", data(), "-F", "ip,sym"}).status, ExitStatus{});
  expect_as_before(stays);
}

}  // namespace
}  // namespace pyinject::test
