// `record -- COMMAND` records the command from its first instruction, with its children.
#include "base/file.hpp"
#include "e2e/expected_trees.hpp"
#include "e2e/perf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/guards.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/pty_process.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace pyinject::test {
namespace {

namespace filesystem = std::filesystem;
using base::Deadline;
using testing::HasSubstr;
using testing::Not;

std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    text += "'" + word + "' ";
  }
  return text;
}

class LaunchedTree : public testing::TestWithParam<int> {};

// Stacks from root to leaf in all threads, from the moment the program knows its call trees.
TEST_P(LaunchedTree, HasWholeStacks) {
  const auto python = plain_interpreter(GetParam());
  if (!python) {
    GTEST_SKIP() << "no CPython 3." << GetParam() << " (scripts/pythons)";
  }
  const TempDir directory;
  const std::string data = directory / "data";
  auto launched = *python;
  launched.command = {tool(), "record", "-F", "999", "-e", "cpu-clock", "-o", data, "--"};
  launched.command.insert(launched.command.end(), python->command.begin(), python->command.end());
  CallTreeServer target{launched};
  const auto begin = monotonic_now();
  target.work(100);  // a second or more of processor time of all threads
  target.nest();
  const auto end = monotonic_now();
  ASSERT_EQ(target.finish(), ExitStatus{});
  const auto found = compare("perf", data, target.trees(), {"--time", begin + "," + end});
  EXPECT_GE(found.all.samples, 300U);
  EXPECT_TRUE(share_is_at_least({.count = found.all.right, .all = found.all.samples}, 0.99))
      << describe(found);
  EXPECT_EQ(found.others, 0U);
  EXPECT_GE(found.threads.size(), 5U);
  RecordProperty("right_percent", std::to_string(found.all.percent()));
  for (const auto& [thread, tree] : target.trees()) {
    remove_maps(*python, thread);
  }
}

// Not 3.13: it calls an __init__ without its trampoline once that call is specialized.
INSTANTIATE_TEST_SUITE_P(Pythons, LaunchedTree, testing::Values(12, 15),
                         testing::PrintToStringParamName());

// Spends time in its own function, below <module>.
std::string burning(const std::string& name) {
  return fmt::format(
      "import time\n"
      "def burn_{0}():\n"
      "    end = time.thread_time() + 0.5\n"
      "    while time.thread_time() < end:\n"
      "        for _ in range(2000):\n"
      "            pass\n"
      "def run_{0}():\n"
      "    burn_{0}()\n",
      name);
}

// The percentage of samples with NAME's innermost function that also have its caller and, outside
// of it, <module> or the main loop of a pool. -1: too few samples.
int rooted(const std::vector<std::string>& stacks, const std::string& name) {
  std::size_t all = 0;
  std::size_t right = 0;
  for (const auto& stack : stacks) {
    const auto leaf = stack.find("py::burn_" + name + ":");
    if (leaf == std::string::npos) {
      continue;
    }
    const auto caller = stack.find("py::run_" + name + ":", leaf);
    const auto root = stack.find("py::<module>:", leaf);
    ++all;
    right += caller != std::string::npos && root != std::string::npos && caller < root ? 1 : 0;
  }
  return all < 30 ? -1 : static_cast<int>(100 * right / all);
}

std::vector<std::string> stacks_of(const std::string& data) {
  const auto script = run({"perf", "script", "--no-inline", "-i", data, "-F", "ip,sym"},
                          {.child = {}, .input = {}, .deadline = kPatience});
  EXPECT_EQ(script.status, ExitStatus{}) << script.err;
  std::vector<std::string> stacks;
  std::size_t begin = 0;
  while (begin < script.out.size()) {
    const auto end = std::min(script.out.find("\n\n", begin), script.out.size());
    stacks.push_back(script.out.substr(begin, end - begin));
    begin = end + 2;
  }
  return stacks;
}

class Launch : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto found = plain_interpreter(GetParam());
    if (!found) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " (scripts/pythons)";
    }
    const auto bin = directory_.path() / "venv" / "bin";
    filesystem::create_directories(bin);
    wrapper("venv/bin/python", "exec " + quoted(found->command) + "\"$@\"\n");
  }
  // Writes an executable shell script that runs TEXT.
  void wrapper(const std::string& name, const std::string& text) const {
    script(name, "#!/bin/sh\n" + text);
  }
  void script(const std::string& name, const std::string& text) const {
    filesystem::permissions(directory_.file(name, text), filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string python() const { return directory_ / "venv/bin/python"; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] RunResult record(const std::vector<std::string>& command,
                                 const ChildOptions& options = {}) const {
    std::vector<std::string> arguments{"record",    "-F", "499",  "-e",
                                       "cpu-clock", "-o", data(), "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    auto own = options;
    own.directory = directory_.path().string();
    own.env["PATH"] = (directory_ / "venv/bin") + ":" + std::string{::getenv("PATH")};
    return run_tool(arguments, own);
  }
  void write_file(const std::string& name, const std::string& text) const {
    (void)directory_.file(name, text);
  }

 private:
  TempDir directory_;
};

// One recording for all: each way of starting has its own functions.
TEST_P(Launch, HasWholeStacksWhateverStartsThePython) {
  const std::string calls_itself = "if __name__ == '__main__':\n";
  script("shebang", "#!" + python() + "\n" + burning("shebang") + "run_shebang()\n");
  script("by-env", "#!/usr/bin/env python\n" + burning("env") + "run_env()\n");
  write_file("module.py", burning("module") + calls_itself + "    run_module()\n");
  write_file("app.py", burning("app") + "run_app()\n");
  write_file("wrapped.py", burning("wrapped") + "run_wrapped()\n");
  wrapper("uv-like", "\"$@\" & wait $!\n");
  write_file("pool.py", "import multiprocessing, sys\n" + burning("spawn") + burning("fork") +
                            burning("forkserver") + calls_itself +
                            "    for method in 'spawn', 'fork', 'forkserver':\n"
                            "        context = multiprocessing.get_context(method)\n"
                            "        child = context.Process(target=globals()['run_' + method])\n"
                            "        child.start()\n"
                            "        child.join()\n"
                            "        assert child.exitcode == 0\n");
  wrapper("all",
          "set -e\n./shebang\n./by-env\npython -m module\n/usr/bin/env python app.py\n"
          "./uv-like python wrapped.py\npython pool.py\n");
  const auto recorded = record({"./all"});
  ASSERT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, HasSubstr(" -i " + data()));
  EXPECT_THAT(recorded.err, Not(HasSubstr("warning"))) << recorded.err;
  const auto stacks = stacks_of(data());
  for (const auto* const name :
       {"shebang", "env", "module", "app", "wrapped", "spawn", "fork", "forkserver"}) {
    EXPECT_GE(rooted(stacks, name), 97) << name << "\n" << recorded.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Pythons, Launch, testing::Values(12, 13, 14, 15),
                         testing::PrintToStringParamName());

class LaunchIsolated : public Launch {};

// Such an interpreter ignores the environment: the tool attaches while it runs.
TEST_P(LaunchIsolated, IsolatedInterpretersAreAttachedTo) {
  write_file("app.py", burning("late") + "for _ in range(6):\n    run_late()\n");
  const auto recorded = record({"python", "-I", "app.py"});
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, HasSubstr("ignores PYTHONPERFSUPPORT"));
  EXPECT_THAT(recorded.err, HasSubstr("trampoline on, stopped"));
  const auto stacks = stacks_of(data());
  EXPECT_GE(std::ranges::count_if(stacks,
                                  [](const auto& stack) {
                                    return stack.find("py::run_late:") != std::string::npos &&
                                           stack.find("py::<module>:") != std::string::npos;
                                  }),
            200);
}

INSTANTIATE_TEST_SUITE_P(Pythons, LaunchIsolated, testing::Values(13),
                         testing::PrintToStringParamName());

// Its files and its map are in the chroot, and perf names them by their paths inside.
TEST(LaunchElsewhere, AChrootedInterpreterHasWholeStacks) {
  const auto chrooted = find_interpreter({.minor = 13, .root = true, .whole_matrix = true});
  if (!chrooted) {
    GTEST_SKIP() << "no chrooted CPython 3.13 (root, scripts/pythons)";
  }
  const TempDir directory;
  std::vector<std::string> arguments{"record",           "-F", "499", "-e", "cpu-clock", "-o",
                                     directory / "data", "--"};
  arguments.insert(arguments.end(), chrooted->command.begin(), chrooted->command.end());
  arguments.insert(arguments.end(),
                   {"-c", burning("there") + "for _ in range(2):\n    run_there()\n"});
  const auto recorded = run_tool(arguments);
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_GE(rooted(stacks_of(directory / "data"), "there"), 97) << recorded.err;
}

// The parts that do not depend on Python.
class LaunchedCommand : public testing::Test {
 protected:
  [[nodiscard]] RunResult record(const std::vector<std::string>& command,
                                 const RunOptions& options = {}) const {
    return run(argv(tool(), command), options);
  }
  [[nodiscard]] std::vector<std::string> argv(const std::string& program,
                                              const std::vector<std::string>& command) const {
    std::vector<std::string> words{program, "record", "-F", "999", "-o", data(), "--"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  void expect_readable() const {
    const auto script = run({"perf", "script", "-i", data(), "-F", "comm,ip"});
    EXPECT_EQ(script.status, ExitStatus{}) << script.err;
    EXPECT_NE(script.out, "");
  }

 private:
  TempDir directory_;
};

// Runs first, so that there are samples.
const std::string kBusy = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; ";

TEST_F(LaunchedCommand, HasItsStatusAndItsStreams) {
  EXPECT_EQ(record({"sh", "-c", "exit 7"}).status, ExitStatus{.code = 7});
  EXPECT_EQ(record({"sh", "-c", "kill -KILL $$"}).status, ExitStatus{.code = 128 + SIGKILL});
  EXPECT_EQ(record({"/no/such/file"}).status, ExitStatus{.code = 127});
  EXPECT_EQ(record({data()}).status, ExitStatus{.code = 126}) << "not executable";
  const auto echo =
      record({"sh", "-c", kBusy + "cat; echo $PYTHONPERFSUPPORT >&2; grep SigIgn /proc/$$/status"},
             {.child = {}, .input = "typed\n", .deadline = kPatience});
  EXPECT_THAT(echo.out, testing::StartsWith("typed\nSigIgn:\t0000000000000000\n"));
  EXPECT_THAT(echo.err, HasSubstr("\n1\n"));
  expect_readable();
}

// The dynamic loader's first function has no unwind information, and vfork(2), in which a shell
// waits for the command that it starts, keeps its return address in a register.
TEST_F(LaunchedCommand, BeginsWithWholeStacks) {
  // Some hundred samples at once: this buffer has room for all stack copies of this size, even if
  // perf gets no CPU to read it meanwhile.
  const auto recorded = run_tool({"record", "-e", "page-faults,context-switches", "-c", "1", "-m",
                                  "16M", "--call-graph", "dwarf,8192", "-o", data(), "--", "sh",
                                  "-c", "/bin/true; /bin/true; /bin/true"});
  EXPECT_EQ(recorded.status, ExitStatus{});
  const auto script = run({"perf", "script", "-i", data(), "-F", "ip,sym,dso"});
  EXPECT_NE(script.out.find("/ld-linux-x86-64.so.2)"), std::string::npos) << recorded.err;
  EXPECT_EQ(script.out.find("[no unwind info: /usr/lib/x86_64-linux-gnu/ld-"), std::string::npos);
  const auto vfork = script.out.find("vfork (");
  ASSERT_NE(vfork, std::string::npos) << recorded.err;
  const auto below = script.out.substr(vfork, script.out.find("\n\n", vfork) - vfork);
  EXPECT_THAT(below, testing::AllOf(HasSubstr("__libc_start_main"), Not(HasSubstr("[broken"))));
}

TEST_F(LaunchedCommand, TheUsersEnvironmentWins) {
  ChildOptions off;
  off.env["PYTHONPERFSUPPORT"] = "0";
  const auto echo = record({"sh", "-c", "echo $PYTHONPERFSUPPORT"},
                           {.child = off, .input = {}, .deadline = kPatience});
  EXPECT_EQ(echo.out, "0\n");
  EXPECT_THAT(echo.err, HasSubstr("PYTHONPERFSUPPORT=0 is set: the trampoline stays off"));
}

TEST_F(LaunchedCommand, ControlCIsForIt) {
  PtyProcess record{argv(
      tool(),
      {"sh", "-c", "trap 'echo caught; exit 3' INT; " + kBusy + "echo up; while :; do :; done"})};
  ASSERT_TRUE(record.read_until("up", Deadline::after(kPatience))) << record.screen();
  record.type("\x03");
  EXPECT_EQ(record.wait(Deadline::after(kPatience)), ExitStatus{.code = 3});
  EXPECT_THAT(record.screen(), HasSubstr("caught"));
  EXPECT_THAT(record.screen(), HasSubstr("next: perf report -i "));
  expect_readable();
}

TEST_F(LaunchedCommand, ATerminationIsPassedOnToIt) {
  ChildProcess record{argv(
      tool(),
      {"sh", "-c", "trap 'echo caught; exit 5' TERM; " + kBusy + "echo up; while :; do :; done"})};
  ASSERT_EQ(record.read_line(Deadline::after(kPatience)), "up");
  record.signal(SIGTERM);
  EXPECT_EQ(record.read_line(Deadline::after(kPatience)), "caught");
  EXPECT_EQ(record.wait(Deadline::after(kPatience)), ExitStatus{.code = 5}) << record.err();
  expect_readable();
}

TEST_F(LaunchedCommand, GoesOnWhenTheToolIsKilled) {
  const Guards guards;
  ChildProcess record{
      argv(tool(), {"sh", "-c", kBusy + "echo up; read line; echo $line > " + path("line")})};
  ASSERT_EQ(record.read_line(Deadline::after(kPatience)), "up");
  record.signal(SIGKILL);
  EXPECT_EQ(record.wait(Deadline::after(kPatience)), ExitStatus{.signal = SIGKILL});
  record.write("goes on\n");
  guards.wait_for_orphans();
  EXPECT_EQ(base::read_file(path("line")), "goes on\n");
  expect_readable();
}

// Steps 4 and 30 of docs/architecture.md: perf runs, and its events are enabled.
TEST_F(LaunchedCommand, DoesNotRunWhenTheToolIsKilledBefore) {
  for (const auto* const step : {"4:kill", "30:kill", "30:fail"}) {
    const Guards guards;
    ChildOptions faulty;
    faulty.env["PYINJECT_TEST_FAULT"] = step;
    const auto recorded = run(argv(faulty_tool(), {"touch", path("ran")}),
                              {.child = faulty, .input = {}, .deadline = kPatience});
    EXPECT_NE(recorded.status, ExitStatus{}) << step;
    guards.wait_for_orphans();
    EXPECT_FALSE(filesystem::exists(path("ran"))) << step;
  }
}

// The reason is reported, and it is recorded anyway.
TEST_F(LaunchedCommand, MayBeAPythonWithoutATrampoline) {
  const auto old = run({"/usr/bin/python3", "-c", "import sys; print(sys.version_info < (3, 12))"});
  if (old.out != "True\n") {
    GTEST_SKIP() << "/usr/bin/python3 is not older than 3.12";
  }
  const auto recorded = record({"/usr/bin/python3", "-c", "sum(range(9000000)); print('ran')"});
  EXPECT_EQ(recorded.status, ExitStatus{});
  EXPECT_EQ(recorded.out, "ran\n");
  EXPECT_THAT(recorded.err, HasSubstr("warning: python3: "));
  const auto reason = recorded.err.find("(python_too_old)");
  ASSERT_NE(reason, std::string::npos) << recorded.err;
  EXPECT_EQ(recorded.err.find("(python_too_old)", reason + 1), std::string::npos) << "said once";
  expect_readable();
}

}  // namespace
}  // namespace pyinject::test
