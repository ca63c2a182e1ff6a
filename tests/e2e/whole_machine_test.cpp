// `record -a`: every Python process of a machine, including those that start and exit during the
// recording.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/isolated_machine.hpp"
#include "e2e/served_tree.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The number of processes at the start; twice as many start during the recording.
int crowd() {
  const char* const value = std::getenv("PYINJECT_CROWD");
  return value != nullptr ? std::atoi(value) : std::getenv("PYINJECT_TEST_ALL") != nullptr ? 14 : 9;
}

// Records STEADY and STORM programs of crowd.py with OPTIONS.
void expect_all_names(const std::string& options, int steady, int storm) {
  std::vector<std::string> commands;
  for (const auto& interpreter : interpreters({.both_ways = true, .whole_matrix = true})) {
    commands.push_back(fmt::format("{}", fmt::join(interpreter.command, " ")));
  }
  ASSERT_FALSE(commands.empty());
  const TempDir directory;
  std::vector<std::string> arguments{options, std::to_string(steady), std::to_string(storm)};
  arguments.insert(arguments.end(), commands.begin(), commands.end());
  const auto told = run_apart(directory, "crowd.py", arguments);
  const auto messages = told.value("messages", "");
  EXPECT_EQ(told["status"], 0) << messages;
  EXPECT_EQ(told["harmed"].dump(), "[]") << messages;
  EXPECT_EQ(told["active"].dump(), "[]") << messages;
  EXPECT_GE(told["seen"], steady);
  const auto names = names_in(directory / "data");
  std::vector<std::string> missing;
  for (const auto& name : told["names"]) {
    if (!names.contains(name.get<std::string>())) {
      missing.push_back(name.get<std::string>());
    }
  }
  EXPECT_THAT(missing, IsEmpty()) << messages;
}

TEST(WholeMachine, HasTheNamesOfAllItsPythonsAndHarmsNone) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "a pid namespace of its own takes root";
  }
  // Other work on this machine is recorded, too (and dropped): with whole stacks, perf would write
  // gigabytes. The names are at the innermost end.
  expect_all_names("--call-graph dwarf,8192", crowd(), 2 * crowd());
}

// Build-ids would also appear in other recordings on this machine and crash an older perf.
TEST(WholeMachine, IsRecordedWithoutBuildIds) {
  const auto perf = find_perf("perf7");
  if (::geteuid() != 0 || !perf) {
    GTEST_SKIP() << "a pid namespace of its own takes root; or no perf7 (scripts/pythons)";
  }
  const TempDir directory;
  const auto result = run({"unshare", "-pf", "--mount-proc", tool(), "record", "-a", "-e",
                           "cpu-clock", "--perf", *perf, "-o", directory / "data", "--", "true"});
  ASSERT_EQ(result.status, ExitStatus{}) << result.err;
  const auto events = run({*perf, "evlist", "-v", "-i", directory / "data"}).out;
  EXPECT_THAT(events, HasSubstr("mmap2: 1"));
  EXPECT_THAT(events, Not(HasSubstr("build_id: 1")));
}

TEST(WholeMachine, HasAllNamesByTheBpfEngine) {
  if (const auto lacks = bpf_engine_lacks(); ::geteuid() != 0 || !lacks.empty()) {
    GTEST_SKIP() << "a pid namespace of its own takes root; " << lacks;
  }
  expect_all_names("--engine bpf", (crowd() + 1) / 2, crowd());
}

TEST(WholeMachine, HasAllNamesByTheBpfEngineWhenNoPythonIsThereAtTheStart) {
  if (const auto lacks = bpf_engine_lacks(); ::geteuid() != 0 || !lacks.empty()) {
    GTEST_SKIP() << "a pid namespace of its own takes root; " << lacks;
  }
  expect_all_names("--engine bpf", 0, 7);
}

// Busy shells, which keep no frame pointers: one that runs before, and the recorded command.
constexpr auto kShells = R"(
sh -c 'while :; do :; done' & before=$!
"$@" -- sh -c 'echo $$; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done'
kill $before; echo $before)";

class WholeMachineBy : public testing::TestWithParam<const char*> {};

TEST_P(WholeMachineBy, UnwindsTheOtherProcesses) {
  if (const auto lacks = bpf_engine_lacks(); ::geteuid() != 0 || !lacks.empty()) {
    GTEST_SKIP() << "a pid namespace of its own takes root; " << lacks;
  }
  const TempDir directory;
  const auto data = directory / "data";
  const auto result =
      run({"unshare", "-mpf",      "--mount-proc", "--kill-child", "sh", "-c",       kShells,
           "sh",      tool(),      "record",       "-a",           "-B", "--engine", GetParam(),
           "-e",      "cpu-clock", "-F",           "999",          "-o", data});
  ASSERT_EQ(result.status, ExitStatus{}) << result.err;
  const auto pids = base::split(result.out, '\n');
  ASSERT_EQ(pids.size(), 3U) << result.out;
  std::map<std::string, std::vector<bool>> whole;
  // perf reads the files of a pid in the mount namespace of the process that has it now: here of a
  // kernel thread, whose root may be another Debian. In a pid namespace of its own, none has it.
  const auto perf =
      directory.file("perf", "#!/bin/sh\nexec unshare -pf --mount-proc perf \"$@\"\n");
  std::filesystem::permissions(perf, std::filesystem::perms::owner_all);
  for (const auto& sample : samples_without_kernel_names(data, perf)) {
    whole[sample.pid].push_back(std::ranges::any_of(sample.frames, [](const ScriptFrame& frame) {
      return frame.symbol.starts_with("__libc_start_main");
    }));
  }
  EXPECT_THAT(result.err, Not(HasSubstr("samples in Python processes")));
  const std::string later{pids[0]};
  const std::string before{pids[1]};
  SCOPED_TRACE(result.err);
  const auto whole_from = [](const auto& samples, std::ptrdiff_t first) {
    const auto from = samples.begin() + first;
    return share_is_at_least(
        {.count = static_cast<std::size_t>(std::count(from, samples.end(), true)),
         .all = static_cast<std::size_t>(samples.end() - from)},
        0.99);
  };
  EXPECT_GT(whole[before].size(), 100U);
  EXPECT_TRUE(whole_from(whole[before], 0));
  EXPECT_GT(whole[later].size(), 200U);
  // It is noticed while the first half is sampled: mostly within a hundredth of it, but the tool
  // may have to wait for a processor.
  EXPECT_TRUE(whole_from(whole[later], std::ssize(whole[later]) / 2));
}
INSTANTIATE_TEST_SUITE_P(Engines, WholeMachineBy, testing::Values("trampoline", "bpf"),
                         [](const auto& one) { return std::string{one.param}; });

// A new control group in the unified hierarchy, given as a directory and removed after the test.
class ControlGroup {
 public:
  ControlGroup() {
    std::ifstream mounts{"/proc/mounts"};
    std::string device;
    std::string place;
    std::string type;
    for (std::string rest; mounts >> device >> place >> type && std::getline(mounts, rest);) {
      if (type == "cgroup2") {
        name_ = fmt::format("pyinject-test-{}", ::getpid());
        path_ = place + "/" + name_;
      }
    }
    std::error_code error;
    if (path_.empty() || !std::filesystem::create_directory(path_, error)) {
      path_.clear();
    }
  }
  ~ControlGroup() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }  // empty: none
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::string path_;
};

// Records with OPTIONS and checks that functions of the chosen process have names, those of the
// other do not.
void expect_only_chosen(const std::string& cgroup, const std::vector<std::string>& options) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "a pid namespace of its own takes root";
  }
  const auto python = plain_interpreter(15);
  if (!python) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  const TempDir directory;
  std::vector<std::string> arguments{fmt::format("{}", fmt::join(python->command, " ")), cgroup};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const auto told = run_apart(directory, "chosen.py", arguments);
  const auto messages = told.value("messages", "");
  EXPECT_EQ(told["status"], 0) << messages;
  EXPECT_EQ(told["ends"].dump(), "[0,0]") << messages;
  EXPECT_EQ(told["active"].dump(), "[]") << messages;
  const auto names = names_in(directory / "data");
  EXPECT_THAT(names, Contains("chosen")) << messages;
  EXPECT_THAT(names, Not(Contains("other"))) << messages;
  EXPECT_THAT(messages, Not(HasSubstr(fmt::format("pid {}:", told.value("other", 0)))));
}

TEST(Scope, HasOnlyTheNamesOfAUsersProcesses) { expect_only_chosen("", {"-u", "nobody"}); }

TEST(Scope, HasOnlyTheNamesOfACommandsProcesses) { expect_only_chosen("", {"--comm", "web*"}); }

TEST(Scope, HasOnlyTheNamesOfAControlGroupsProcesses) {
  const ControlGroup group;
  if (group.path().empty()) {
    GTEST_SKIP() << "no control group can be made in the unified hierarchy";
  }
  expect_only_chosen(group.path(), {"-G", group.name()});
}

// A program that starts another Python on request.
constexpr auto kParent = R"(
import subprocess, sys
print("ready", flush=True)
sys.stdin.readline()
child = """
import time
def grown_up(until):
    while time.process_time() < until:
        sum(range(300))
for _ in range(700):
    grown_up(time.process_time() + 0.001)
"""
print(subprocess.call(sys.argv[1:] + ["-c", child]), flush=True)
sys.stdin.readline()
)";

std::set<std::string> record_parent(const std::vector<std::string>& options) {
  const auto python = plain_interpreter(15).value();
  PythonOptions arguments;
  arguments.args = python.command;
  PythonProcess parent{python, kParent, arguments};
  const TempDir directory;
  std::vector<std::string> command{tool(), "record", "-F", "499", "-e", "cpu-clock"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-p", std::to_string(parent.pid().value()), "-o",
                                 directory / "data", "--", "sh", "-c", "echo go; read word"});
  ChildProcess recording{command};
  EXPECT_EQ(recording.read_line(base::Deadline::after(std::chrono::seconds{60})), "go")
      << recording.err();
  parent.send_line("");
  EXPECT_EQ(parent.read_line(std::chrono::seconds{60}), "0");
  recording.write("\n");
  EXPECT_EQ(recording.wait(base::Deadline::after(std::chrono::seconds{60})), ExitStatus{})
      << recording.err();
  return names_in(directory / "data");
}

TEST(Scope, HasTheNamesOfAFamilysLaterProcesses) {
  if (!plain_interpreter(15)) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  EXPECT_THAT(record_parent({"--children"}), Contains("grown_up"));
  EXPECT_THAT(record_parent({}), Not(Contains("grown_up"))) << "only with --children";
}

}  // namespace
}  // namespace pyinject::test
