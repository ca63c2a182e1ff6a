// Recordings that are made to fail, wholly or in part: whatever is missing in an output, a line of
// the recording and of each verb that reads the file says so. failed_targets_test.cpp has more
// ways; StackKinds those whose samples are counted (exec, other programs, sub-interpreters, deep
// stacks), Readers the lost names.
#include "e2e/failed_recordings.hpp"

#include "base/fault.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/covering.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

TEST_P(FailedRecordings, SayThatPerfWasKilled) {
  start();
  RunningRecord running{arguments({"--no-buffering"})};
  work();
  const auto tool = running.child().pid().value();
  std::ifstream children{fmt::format("/proc/{}/task/{}/children", tool, tool)};
  for (pid_t child = 0; children >> child;) {
    if (contents_of(fmt::format("/proc/{}/comm", child)).starts_with("perf")) {
      ::kill(child, SIGKILL);
    }
  }
  EXPECT_EQ(running.wait(), ExitStatus{.code = 125});
  EXPECT_THAT(running.child().err(), HasSubstr("perf record died"));
  expect_readers_say(AnyOf(HasSubstr("perf record died"), HasSubstr("no samples")));
}

TEST_P(FailedRecordings, SayThatTheToolWasKilled) {
  if (has_frame_pointers()) {
    GTEST_SKIP() << "perf's file is complete but for functions entered before the attach";
  }
  start();
  RunningRecord running{arguments()};
  work();
  running.child().signal(SIGKILL);
  const auto deadline = base::Deadline::after(kPatience);  // perf gets SIGINT, and completes it
  while (run_tool({"report", data()}).status != ExitStatus{} && !deadline.expired()) {
    std::this_thread::sleep_for(milliseconds{20});
  }
  expect_readers_say(HasSubstr("only the kernel's part of their stacks"));
}

TEST_P(FailedRecordings, SayThatTheDiskWasFull) {
  if (::geteuid() != 0 || has_frame_pointers()) {
    GTEST_SKIP() << "mounting needs root; with frame pointers, as above";
  }
  start();
  const std::string disk = directory() / "disk";
  fs::create_directory(disk);
  const auto script = fmt::format(
      "mount -t tmpfs -o size=128k tmpfs {0}; \"$@\"; s=$?; cp {0}/perf.data {1}; exit $s", disk,
      data());
  RunningRecord running{arguments({}, disk + "/perf.data"),
                        {"unshare", "-m", "sh", "-c", script, "sh", tool()}};
  work();
  EXPECT_EQ(running.finish(), ExitStatus{.code = 125}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("No space left on device"));
  expect_readers_say(HasSubstr("only the kernel's part of their stacks"));
}

TEST_P(FailedRecordings, SayThatTheMapWasEmptied) {
  if (!trampoline()) {
    GTEST_SKIP() << "there is no map";
  }
  start();
  RunningRecord running{arguments()};
  work();
  fs::resize_file(map(), 0);
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("with functions that have no name"));
  expect_readers_say(HasSubstr("with functions that have no name"));
}

TEST_P(FailedRecordings, SayThatTheMapHadNoRoomLeft) {
  if (!trampoline()) {
    GTEST_SKIP() << "there is no map";
  }
  auto& target = start();
  RunningRecord running{arguments()};
  work();
  limit(RLIMIT_FSIZE, fs::file_size(map()));
  target.send_line("more");
  EXPECT_EQ(target.read_line(), "new");
  work();
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("with functions that have no name"));
  expect_readers_say(HasSubstr("with functions that have no name"));
}

TEST_P(FailedRecordings, SayThatTheTargetExited) {
  auto& target = start();
  RunningRecord running{arguments()};
  work();
  target.child().signal(SIGKILL);
  EXPECT_EQ(running.wait(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("the target exited before the end"));
}

TEST_P(FailedRecordings, SayThatTheFileIsDamaged) {
  start();
  RunningRecord running{arguments()};
  work();
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::fstream file{data(), std::ios::in | std::ios::out | std::ios::binary};
  constexpr std::streamoff kData = 40;  // the position and size of the records, in the header
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  file.seekg(kData);
  file.read(reinterpret_cast<char*>(&begin), sizeof begin);
  file.read(reinterpret_cast<char*>(&size), sizeof size);
  const std::string zeros(4096, '\0');
  file.seekp(static_cast<std::streamoff>(begin + size / 16 * 8));
  file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  file.close();
  expect_readers_say(HasSubstr("the file is damaged"));
}

TEST_P(FailedRecordings, SayThatSamplesWereLost) {
  start();
  RunningRecord running{arguments({"-m", "1", "-F", "20000", "--call-graph", "dwarf,32768"})};
  work();
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("perf lost "));
  expect_readers_say(HasSubstr("perf has lost "));
}

TEST_P(FailedRecordings, SayThatADirectoryIsNotPostProcessed) {
  start();
  RunningRecord running{
      arguments({"--threads"}),
      {"env", fmt::format("PYINJECT_TEST_FAULT={}:fail", static_cast<int>(base::Step::kWoven)),
       faulty_tool()}};
  work();
  EXPECT_EQ(running.finish(), ExitStatus{.code = 125}) << running.child().err();
  EXPECT_THAT(running.child().err(), HasSubstr("left unprocessed"));
  EXPECT_TRUE(fs::is_directory(data()));
  expect_readers_say(HasSubstr("is a directory (--threads) that was not post-processed"));
}

TEST_P(FailedRecordings, SayThatAPipeCannotBeRead) {
  start();
  auto command = arguments({}, "-");
  command.insert(command.begin(), {"sh", "-c", "\"$@\" > " + data(), "sh", tool(), "record"});
  command.insert(command.end(), {"--", "sleep", "0.1"});
  const auto result = run(command);
  if (!trampoline()) {
    EXPECT_THAT(result.err, HasSubstr("perf's output in a file"));
    return;
  }
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  expect_readers_say(HasSubstr("perf wrote it to a pipe"));
}

TEST_P(FailedRecordings, SayThatCopiedStacksAreNotUnwound) {
  start();
  const auto result = run({"perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph",
                           "dwarf,4096", "-o", data(), "-p", pid(), "--", "sleep", "0.3"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  expect_readers_say(HasSubstr("are not unwound"));
}

TEST_P(FailedRecordings, SayThatPerfDidNotFinish) {
  start();
  ChildProcess perf{{"perf", "record", "-e", "cpu-clock", "-o", data(), "-p", pid()}};
  const auto deadline = base::Deadline::after(kPatience);
  std::error_code none;
  while ((!fs::exists(data()) || fs::file_size(data(), none) < 1000) && !deadline.expired()) {
    std::this_thread::sleep_for(milliseconds{20});
  }
  perf.signal(SIGKILL);
  EXPECT_TRUE(perf.wait(base::Deadline::after(kPatience)));
  expect_readers_say(HasSubstr("perf record did not finish writing it"));
}

TEST_P(FailedRecordings, SayThatTheTargetIsStopped) {
  start().pause();
  if (trampoline()) {
    expect_refused({"stopped by job control", "(deadline)", "the request was withdrawn"});
    return;
  }
  const auto messages = run_tool(record_until()).err;
  EXPECT_THAT(messages, HasSubstr(": 0 samples"));
  expect_readers_repeat(messages, "stopped by job control");
  expect_readers_say(HasSubstr("no samples"));
}

TEST_P(FailedRecordings, SayThatTheProgramWritesAJitDump) {
  if (GetParam().python.minor < 13) {
    GTEST_SKIP() << "-X perf_jit came with 3.13";
  }
  start(working_program(), {.interpreter_args = {"-X", "perf_jit"}, .args = {}, .child = {}});
  if (trampoline()) {
    expect_refused({"-X perf_jit", "(map_not_written)", "--engine bpf"});
  } else {
    RunningRecord running{arguments()};
    work();
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    EXPECT_THAT(run_tool({"report", data()}).out, HasSubstr("first"));
  }
  std::error_code none;
  fs::remove(fmt::format("{}/tmp/jit-{}.dump", GetParam().python.root, pid()), none);
}

TEST_P(FailedRecordings, SayThatALaunchedProgramWritesAJitDump) {
  if (!trampoline() || GetParam().python.minor < 13) {
    GTEST_SKIP() << "by the trampoline, from 3.13 on";
  }
  std::vector<std::string> command{"record",    "--engine", "trampoline", "-e",
                                   "cpu-clock", "-o",       data(),       "--"};
  const auto& python = GetParam().python.command;
  command.insert(command.end(), python.begin(), python.end());
  command.insert(command.end(), {"-c",
                                 "import os, time\n"
                                 "def work():\n"
                                 "    while time.process_time() < 0.5: pass\n"
                                 "work()\n"
                                 "try: os.remove(f'/tmp/jit-{os.getpid()}.dump')\n"
                                 "except OSError: pass"});
  ChildOptions options;
  options.env["PYTHON_PERF_JIT_SUPPORT"] = "1";
  const auto result = run_tool(command, options);
  EXPECT_THAT(result.err, HasSubstr("names are in /tmp/jit-PID.dump"));
  expect_readers_say(HasSubstr("lack Python functions"));
}

TEST_P(FailedRecordings, SayThatLimitsForbidTheActivation) {
  if (!trampoline()) {
    GTEST_SKIP() << "needs nothing of the process";
  }
  start();
  rlimit files{};
  ASSERT_EQ(::prlimit(process().value(), RLIMIT_NOFILE, nullptr, &files), 0);
  limit(RLIMIT_AS, rlim_t{1} << 20U);
  expect_refused({"RLIMIT_AS", "--engine bpf"});
  limit(RLIMIT_AS, RLIM_INFINITY);
  limit(RLIMIT_NOFILE, 3);
  expect_refused({"RLIMIT_NOFILE", "--engine bpf"});
  limit(RLIMIT_NOFILE, files.rlim_cur);
  limit(RLIMIT_FSIZE, 0);
  expect_refused({"RLIMIT_FSIZE", "--engine bpf"});
}

TEST_P(FailedRecordings, SayThatTheTrampolineStaysOff) {
  if (!trampoline()) {
    GTEST_SKIP() << "needs no trampoline";
  }
  std::vector<std::string> command{"record",    "--engine", "trampoline", "-e",
                                   "cpu-clock", "-o",       data(),       "--"};
  const auto& python = GetParam().python.command;
  command.insert(command.end(), python.begin(), python.end());
  command.insert(command.end(), {"-c", "import time\nwhile time.process_time() < 0.3: pass"});
  ChildOptions options;
  options.env["PYTHONPERFSUPPORT"] = "0";
  const auto result = run_tool(command, options);
  EXPECT_THAT(result.err, HasSubstr("Python functions have no names"));
  expect_readers_say(HasSubstr("lack Python functions"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, FailedRecordings, testing::ValuesIn(recordings()), recorded_name);
COVER_TESTS(FailedRecordings, 6);

}  // namespace
}  // namespace pyinject::test
