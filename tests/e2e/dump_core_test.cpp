// `dump --core`: cores of real processes, written by the kernel and by a debugger, compared with
// what the programs know of themselves and with dumps of the running processes.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/dumped_stacks.hpp"
#include "pyinject/base/error.hpp"
#include "support/asleep.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunResult dump_core(const std::string& file, const std::vector<std::string>& options = {}) {
  std::vector<std::string> argv{tool(), "dump", "--core", file};
  argv.insert(argv.end(), options.begin(), options.end());
  return run(argv);
}

json core_as_json(const std::string& file) {
  const auto result = dump_core(file, {"--json"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out).at("processes").at(0);
}

json live_as_json(base::Pid pid) {
  const auto result = run({tool(), "dump", "--json", "-p", std::to_string(pid.value())});
  return json::parse(result.out).at("processes").at(0);
}

// Repeats live dumps of PID until CONDITION holds for one.
template <typename Condition>
json live_when(base::Pid pid, Condition condition) {
  const auto deadline = Deadline::after(kPatience);
  while (true) {
    auto process = live_as_json(pid);
    if (condition(process)) {
      return process;
    }
    if (deadline.expired()) {
      throw base::Error{"no such dump: " + process.dump(1)};
    }
  }
}

// Why the kernel writes no core into the working directory of a process; empty: it does.
std::string why_no_kernel_core() {
  const auto pattern = base::read_file("/proc/sys/kernel/core_pattern").value_or("|unknown");
  const auto name = std::string{base::trim(pattern)};
  return name.starts_with('|') || name.find('/') != std::string::npos || name.empty()
             ? "kernel.core_pattern is " + name
             : std::string{};
}

// INTERPRETER without a limit of the size of its core.
Interpreter that_dumps_core(Interpreter interpreter) {
  const std::vector<std::string> prefix{"prlimit", "--core=unlimited"};
  interpreter.command.insert(interpreter.command.begin(), prefix.begin(), prefix.end());
  return interpreter;
}

// The only core in DIRECTORY. Throws base::Error if there is none.
std::string core_in(const TempDir& directory) {
  for (const auto& entry : std::filesystem::directory_iterator{directory.path()}) {
    return entry.path().string();
  }
  throw base::Error{"the kernel has written no core"};
}

// Kills PYTHON with a signal that dumps core. Returns the core in DIRECTORY, its working directory.
std::string core_of_killed(PythonProcess& python, const TempDir& directory) {
  python.child().signal(SIGSEGV);
  const auto status = python.child().wait(Deadline::after(kPatience));
  EXPECT_EQ(status, (ExitStatus{.code = 0, .signal = SIGSEGV}));
  return core_in(directory);
}

struct WrittenCore {
  std::string file;
  // gdb 13 ends a segment at the first page that it cannot read. Where glibc (from 2.42 on)
  // guards stacks by such a page, the stacks of all threads but the first are missing.
  bool whole_stacks = true;
};

WrittenCore core_by_debugger(base::Pid pid, const TempDir& directory) {
  const auto result = run({"gcore", "-o", directory / "core", std::to_string(pid.value())},
                          {.child = {}, .input = {}, .deadline = std::chrono::seconds{60}});
  EXPECT_EQ(result.status, ExitStatus{}) << result.out << result.err;
  constexpr std::string_view kFailure = "Memory read failed for corefile section, 1048576 bytes";
  const bool failed = (result.out + result.err).find(kFailure) != std::string::npos;
  return {.file = directory / ("core." + std::to_string(pid.value())), .whole_stacks = !failed};
}

PythonOptions dumped_program(int threads, const TempDir& directory) {
  PythonOptions options{
      .interpreter_args = {}, .args = {std::to_string(threads), "1000"}, .child = {}};
  options.child.directory = directory.path().string();
  return options;
}

// By tid.
std::map<long, json> threads_of(const json& process) {
  std::map<long, json> threads;
  for (const auto& thread : process.at("threads")) {
    threads[thread.at("tid")] = thread;
  }
  return threads;
}

std::map<std::string, json> tasks_of(const json& process) {
  std::map<std::string, json> tasks;
  for (const auto& task : process.at("tasks")) {
    tasks[task.at("id")] = task;
  }
  return tasks;
}

std::set<std::set<long>> deadlocks_of(const json& process) {
  std::set<std::set<long>> all;
  for (const auto& members : process.at("deadlocks")) {
    all.insert(members.get<std::set<long>>());
  }
  return all;
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.insert(key);
  }
  return keys;
}

// A loader that was run as a command has removed its own arguments from the stack.
void expect_command_of(const json& core, const json& live) {
  const std::string command = core.at("command");
  const std::string running = live.at("command");
  if (running.find("/ld-linux") == std::string::npos) {
    EXPECT_EQ(command, running);
  } else {
    EXPECT_THAT(command, AllOf(HasSubstr(" -c "), Not(HasSubstr("/ld-linux"))));
  }
}

class DumpOfCore : public testing::TestWithParam<Interpreter> {};

TEST_P(DumpOfCore, ShowsTheProgramsOwnStacksOfAKilledProcess) {
  if (const auto why = why_no_kernel_core(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const TempDir directory;
  PythonProcess python{that_dumps_core(GetParam()), target_source("dumped.py"),
                       dumped_program(50, directory)};
  const auto expected = read_stacks(python);
  const auto live = live_when(python.pid(), all_wait);
  const auto core = core_as_json(core_of_killed(python, directory));
  EXPECT_EQ(stacks_of(core), expected);
  EXPECT_EQ(core.at("pid"), python.pid().value());
  EXPECT_EQ(core.at("version"), live.at("version"));
  EXPECT_EQ(core.at("interpreter"), live.at("interpreter"));
  EXPECT_EQ(core.at("user"), live.at("user"));
  expect_command_of(core, live);
  const auto& origin = core.at("core");
  EXPECT_EQ(origin.at("signal"), SIGSEGV);
  EXPECT_EQ(origin.at("signal_name"), "SIGSEGV");
  EXPECT_EQ(origin.at("cause"), fmt::format("sent by pid {} (uid {})", ::getpid(), ::getuid()));
  EXPECT_EQ(origin.at("tid"), python.pid().value());
  EXPECT_EQ(origin.at("truncated"), false);
  const auto running = threads_of(live);
  const auto dead = threads_of(core);
  ASSERT_EQ(dead.size(), running.size());
  for (const auto& [tid, thread] : running) {
    for (const auto* const key : {"python_id", "python_name", "interpreters", "state", "gil"}) {
      EXPECT_EQ(dead.at(tid).at(key), thread.at(key)) << tid << " " << key;
    }
    EXPECT_EQ(dead.at(tid).at("system_call").at("name"), thread.at("system_call").at("name"));
    EXPECT_TRUE(dead.at(tid).at("cpu").is_null());
    EXPECT_THAT(dead.at(tid).at("kernel"), IsEmpty());
  }
}

TEST_P(DumpOfCore, HasTheFieldsOfALiveDump) {
  const TempDir directory;
  PythonProcess python{GetParam(), target_source("dumped.py"), dumped_program(2, directory)};
  const auto live = live_when(python.pid(), all_wait);
  const auto core = core_as_json(core_by_debugger(python.pid(), directory).file);
  EXPECT_EQ(keys_of(core), keys_of(live));
  EXPECT_TRUE(live.at("core").is_null());
  expect_command_of(core, live);
  EXPECT_EQ(keys_of(core.at("threads").at(0)), keys_of(live.at("threads").at(0)));
}

TEST_P(DumpOfCore, ShowsTheStacksInACoreOfADebugger) {
  const TempDir directory;
  PythonProcess python{GetParam(), target_source("dumped.py"), dumped_program(10, directory)};
  const auto expected = read_stacks(python);
  (void)live_when(python.pid(), all_wait);
  const auto written = core_by_debugger(python.pid(), directory);
  python.expect_alive();
  const auto core = core_as_json(written.file);
  EXPECT_TRUE(core.at("core").at("signal").is_null());
  if (written.whole_stacks) {
    EXPECT_EQ(stacks_of(core), expected);
    return;
  }
  // Each stack is right up to where it says that the rest is missing.
  for (const auto& [tid, thread] : threads_of(core)) {
    const auto& frames = thread.at("frames");
    const auto& own = expected.at(tid);
    ASSERT_FALSE(frames.empty());
    ASSERT_LE(frames.size(), own.size());
    EXPECT_EQ(thread.at("complete"), frames.size() == own.size() && tid == python.pid().value());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(frames.at(i).at("function"), std::get<0>(own.at(i)));
      EXPECT_EQ(frames.at(i).at("line"), std::get<2>(own.at(i)));
    }
  }
}

TEST_P(DumpOfCore, NamesTheDeadlocksAndTheTasksOfALiveDump) {
  if (const auto why = why_no_kernel_core(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const TempDir directory;
  PythonOptions options;
  options.child.directory = directory.path().string();
  PythonProcess python{that_dumps_core(GetParam()), target_source("stuck.py"), options};
  const auto live = live_when(python.pid(), [](const json& one) {
    const auto waiting = std::ranges::count_if(
        one.at("threads"), [](const json& thread) { return !thread.at("waits_for").is_null(); });
    // All but the one with the tasks.
    return deadlocks_of(one).size() == 4 && waiting == 12 && one.at("tasks").size() == 7;
  });
  const auto file = core_of_killed(python, directory);
  const auto core = core_as_json(file);
  EXPECT_EQ(deadlocks_of(core), deadlocks_of(live));
  EXPECT_EQ(tasks_of(core), tasks_of(live));
  EXPECT_EQ(core.at("all_tasks"), true);
  const auto running = threads_of(live);
  for (const auto& [tid, thread] : threads_of(core)) {
    EXPECT_EQ(thread.at("waits_for"), running.at(tid).at("waits_for"));
    EXPECT_EQ(thread.at("python_name"), running.at(tid).at("python_name"));
  }
  EXPECT_THAT(
      dump_core(file).out,
      AllOf(HasSubstr("\n  core file: " + file + "\n"),
            HasSubstr(fmt::format("\n  SIGSEGV: sent by pid {}", ::getpid())),
            HasSubstr("  DEADLOCK of 2 threads:\n"), HasSubstr("  DEADLOCK of 3 threads:\n"),
            HasSubstr("\n      task \"middle-1\": pending, awaited by \"root\"\n")));
}

TEST_P(DumpOfCore, NamesTheFaultAndTheHolderOfTheGil) {
  if (const auto why = why_no_kernel_core(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  if (!has_module(GetParam(), "ctypes")) {
    GTEST_SKIP() << "it has no ctypes";
  }
  const TempDir directory;
  PythonOptions options;
  options.child.directory = directory.path().string();
  PythonProcess python{that_dumps_core(GetParam()), R"(
import ctypes, sys
def crashes():
    ctypes.string_at(16)
print('ready', flush=True)
sys.stdin.readline()
crashes()
)",
                       options};
  python.send_line("go");
  EXPECT_EQ(python.child().wait(Deadline::after(kPatience)),
            (ExitStatus{.code = 0, .signal = SIGSEGV}));
  const auto file = core_in(directory);
  const auto core = core_as_json(file);
  EXPECT_EQ(core.at("core").at("cause"), "no memory is mapped at 0x10");
  const auto& thread = core.at("threads").at(0);
  const bool gil = !GetParam().free_threaded;
  EXPECT_EQ(thread.at("gil"), gil ? "held" : "none");
  EXPECT_EQ(thread.at("state"), "unknown");
  EXPECT_TRUE(thread.at("system_call").is_null());
  EXPECT_EQ(thread.at("frames").at(1).at("function"), "crashes");
  EXPECT_THAT(dump_core(file).out,
              HasSubstr(fmt::format(": received SIGSEGV, {}not blocked in a system call\n"
                                    "    string_at  ",
                                    gil ? "holds the GIL, " : "")));
}

TEST_P(DumpOfCore, SaysThatACoreIsTruncated) {
  if (const auto why = why_no_kernel_core(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const TempDir directory;
  PythonProcess python{that_dumps_core(GetParam()), target_source("dumped.py"),
                       dumped_program(5, directory)};
  const auto expected = read_stacks(python);
  (void)live_when(python.pid(), all_wait);
  const auto file = core_of_killed(python, directory);
  const auto size = std::filesystem::file_size(file);
  constexpr int kParts = 16;
  for (int part = kParts - 1; part > 0; --part) {
    const auto left = size * static_cast<std::uint64_t>(part) / kParts;
    std::filesystem::resize_file(file, left);
    const auto result = dump_core(file);
    EXPECT_EQ(result.status.signal, 0);
    EXPECT_THAT(result.out + result.err,
                HasSubstr(fmt::format("truncated: it has {} of {} bytes", left, size)));
    const auto read = dump_core(file, {"--json"});
    EXPECT_EQ(read.status, result.status);
    for (const auto& [tid, thread] : threads_of(json::parse(read.out).at("processes").at(0))) {
      const auto& frames = thread.at("frames");
      ASSERT_LE(frames.size(), expected.at(tid).size());
      EXPECT_TRUE(thread.at("complete") == false || frames.size() == expected.at(tid).size() ||
                  result.status.code != 0);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(frames.at(i).at("function"), std::get<0>(expected.at(tid).at(i)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Interpreters, DumpOfCore,
                         testing::ValuesIn(interpreters(
                             {.root = false, .only_read = true, .each_version = Prefer::kLoader})),
                         [](const auto& tested) { return tested.param.name; });

TEST(DumpOfCoreCommand, RefusesTheCoreOfAnotherProgram) {
  const TempDir directory;
  ChildProcess sleeper{{"sleep", "1000"}};
  wait_until_asleep(sleeper.pid());
  const auto core = core_by_debugger(sleeper.pid(), directory);
  const auto result = dump_core(core.file);
  EXPECT_EQ(result.status.code, 125);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, fmt::format("perf-pyinject: error: {}: cannot dump: it is not a Python "
                                    "process (not_python)\n",
                                    core.file));
  const auto process = json::parse(dump_core(core.file, {"--json"}).out).at("processes").at(0);
  EXPECT_EQ(process.at("reason"), "not_python");
  EXPECT_EQ(process.at("pid"), sleeper.pid().value());
}

TEST(DumpOfCoreCommand, RefusesWhatIsNoCore) {
  const TempDir directory;
  for (const auto& [file, why] : std::map<std::string, std::string>{
           {directory.file("text", "not a core"), "it is not a core file"},
           {tool(), "it is not a core file, but a program or library"},
           {directory.path().string(), "it is not a regular file"},
           {directory / "missing", "No such file or directory"}}) {
    const auto result = dump_core(file);
    EXPECT_EQ(result.status.code, 125);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, fmt::format("perf-pyinject: error: {}: cannot dump: {}\n", file, why));
    EXPECT_EQ(json::parse(dump_core(file, {"--json"}).out).at("processes"), json::array());
  }
}

TEST(DumpOfCoreCommand, IsOfNoRunningProcess) {
  for (const auto& options : std::vector<std::vector<std::string>>{
           {"-p", "1"}, {"-a"}, {"--stop"}, {"--native"}, {"--watch", "1s"}}) {
    const auto result = dump_core("core", options);
    EXPECT_EQ(result.status.code, 129);
    EXPECT_THAT(result.err, HasSubstr("--core cannot be combined with "));
  }
}

}  // namespace
}  // namespace pyinject::test
