// The built tool's messages for targets that cannot be recorded, with one interpreter each. Wrong
// command lines are in cli_record_test.cpp.
#include "base/file.hpp"
#include "integration/cli_bad_input.hpp"
#include "integration/detection.hpp"
#include "integration/tracer.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/own_tmp.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;

TEST_F(CliBadInput, ItsOwnPidIsRefused) {
  const auto result =
      run({"sh", "-c", R"(exec "$0" record -p $$ -o "$1" -- true)", tool(), data()});
  expect_failure(result, {"pid ", "perf-pyinject itself", "(own_process)"});
}

TEST_F(CliBadInput, APidWithoutProcessIsRefused) {
  ChildProcess child{{"true"}};
  ASSERT_TRUE(child.wait(Deadline::after(kPatience)));
  expect_refused(child.pid(), "no_such_process", {"no such process"});
}

TEST_F(CliBadInput, AZombieIsRefused) {
  PythonProcess python{any(), kIdle};
  python.child().close_stdin();
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(python.pid().value()), &info, WEXITED | WNOWAIT), 0);
  expect_refused(python.pid(), "zombie", {"zombie", "parent"});
}

TEST_F(CliBadInput, AProcessWithoutPythonIsRefused) {
  ChildProcess child{{"cat"}};
  child.write("ready\n");
  ASSERT_EQ(child.read_line(Deadline::after(kPatience)), "ready");
  expect_refused_unharmed(child.pid(), "not_python", {"not a Python process"});
  child.write("still there\n");
  EXPECT_EQ(child.read_line(Deadline::after(kPatience)), "still there");
}

// For example, the Python of Debian 12.
TEST_F(CliBadInput, AnOldPythonIsRefused) {
  std::vector<std::string> candidates{"/usr/bin/python3"};
  const char* const home = std::getenv("HOME");
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator{
           fs::path{home == nullptr ? "/" : home} / ".pyenv/versions", ignored}) {
    candidates.push_back(entry.path() / "bin/python");
  }
  for (const auto& path : candidates) {
    if (!fs::exists(path)) {
      continue;
    }
    ChildProcess python{{path, "-c",
                         "import sys, platform\n"
                         "sys.stdout.write(platform.python_version() + chr(10))\n"
                         "sys.stdout.flush()\n"
                         "sys.stdin.read()\n"}};
    const auto version = python.read_line(Deadline::after(kPatience)).value_or("");
    if (!version.starts_with("3.11.")) {
      continue;
    }
    expect_refused_unharmed(python.pid(), "python_too_old",
                            {"it is Python " + version, "came with Python 3.12"});
    EXPECT_TRUE(python.running());
    return;
  }
  GTEST_SKIP() << "no Python 3.11 is here";
}

TEST_F(CliBadInput, AnotherUsersProcessIsRefused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "being another user needs root";
  }
  PythonProcess python{any(), kAnswers};
  const SeenDirectory seen{Interpreter{}};  // a directory that every user may enter
  fs::copy_file(tool(), seen.here("tool"));
  auto argv = record_argv(python.pid());
  argv.front() = seen.here("tool");
  RunOptions options;
  options.child.uid = kNobody;
  const auto result = run(argv, options);
  expect_failure(result, {"pid " + say(python.pid()) + ": ", "(no_permission)", "uid 0",
                          "CAP_SYS_PTRACE", "Permission denied"});
  // sudo has a PATH of its own.
  EXPECT_THAT(result.err, testing::HasSubstr("as root: sudo " + seen.here("tool") + " record "));
  expect_as_before(python);
}

TEST_F(CliBadInput, AProcessTracedByStraceIsRefused) {
  PythonProcess python{any(), kAnswers};
  {
    const Tracer tracer{strace_of(python.pid())};
    if (!tracer.attached()) {
      GTEST_SKIP() << "no strace that attaches: " << tracer.said();
    }
    expect_refused(python.pid(), "traced",
                   {"pid " + say(tracer.pid()) + " (strace)", "detach that"});
  }
  expect_as_before(python);
}

TEST_F(CliBadInput, DumpWithAStopOfATracedProcessIsRefused) {
  PythonProcess python{any(), kAnswers};
  {
    const Tracer tracer{strace_of(python.pid())};
    if (!tracer.attached()) {
      GTEST_SKIP() << "no strace that attaches: " << tracer.said();
    }
    expect_failure(run({tool(), "dump", "--stop", "-p", say(python.pid())}),
                   {"pid " + say(python.pid()) + ": cannot dump: ", "(traced)",
                    "traced by pid " + say(tracer.pid()), "without --stop"});
    EXPECT_EQ(run({tool(), "dump", "-p", say(python.pid())}).status, ExitStatus{});
  }
  expect_as_before(python);
}

TEST_F(CliBadInput, AProcessTracedByGdbIsRefused) {
  PythonProcess python{any(), kAnswers};
  {
    const Tracer tracer{gdb_of(python.pid())};
    if (!tracer.attached()) {
      GTEST_SKIP() << "no gdb that attaches: " << tracer.said();
    }
    expect_refused(python.pid(), "traced", {"pid " + say(tracer.pid()), "gdb", "detach that"});
  }
  expect_as_before(python);
}

TEST_F(CliBadInput, TheJitIsOn) {
  const auto interpreter = find_interpreter({.jit = true});
  if (!interpreter) {
    GTEST_SKIP() << "no interpreter here has a JIT";
  }
  PythonProcess python{with_variable(*interpreter, "PYTHON_JIT=1"),
                       "import sys\n"
                       "print('ready', flush=True)\n"
                       "print(sys._jit.is_enabled(), flush=True)\n"
                       "sys.stdin.read()\n"};
  ASSERT_EQ(python.read_line(), "True");
  SCOPED_TRACE(interpreter->name);
  expect_refused_unharmed(python.pid(), "jit_active", {"JIT", "PYTHON_JIT=0"});
  python.expect_alive();
}

TEST_F(CliBadInput, AForeignEvaluatorIsRefused) {
  PythonProcess python{any(), kForeignEvaluator};
  python.send_line("put it in");
  ASSERT_THAT(python.read_line(), testing::StartsWith("foreign "));
  expect_refused_unharmed(python.pid(), "foreign_evaluator", {"PEP 523", "libc", "disable"});
  python.send_line("take it out");
  EXPECT_EQ(python.read_line(), "own");
}

// CPython would write its map through the link, or not at all.
class CliBadMap : public CliBadInput {
 protected:
  void start(const Interpreter& interpreter) {
    python_.emplace(interpreter, kIdle);
    seen_ = "/tmp/perf-" + say(python_->pid()) + ".map";
    map_ = interpreter.root + seen_;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove(map_, ignored);
  }

  std::optional<PythonProcess> python_;
  std::string seen_;
  std::string map_;
};

TEST_F(CliBadMap, ASymbolicLinkIsRefused) {
  start(any());
  const SeenDirectory elsewhere{any()};
  elsewhere.write("precious", "kept");
  fs::create_symlink(elsewhere.seen("precious"), map_);
  expect_refused_unharmed(python_->pid(), "map_not_regular", {seen_, "symbolic link", "remove it"});
  EXPECT_EQ(base::read_file(elsewhere.here("precious")), "kept");
}

TEST_F(CliBadMap, AFileOfSomebodyElseIsRefused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "giving files away needs root";
  }
  start(any());
  ASSERT_EQ(::mknod(map_.c_str(), S_IFREG | 0600, 0), 0);
  ASSERT_EQ(::chown(map_.c_str(), kNobody, kNobody), 0);
  expect_refused_unharmed(python_->pid(), "map_foreign",
                          {seen_, "belongs to uid 65534", "remove it"});
  EXPECT_EQ(fs::file_size(map_), 0U);
}

TEST_F(CliBadMap, AReadOnlyTmpIsRefused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  start(wrapped(any(), unshared_with_tmpfs(any().root, "ro")));
  expect_refused_unharmed(python_->pid(), "map_directory", {"/tmp is read-only", "mount a tmpfs"});
}

}  // namespace
}  // namespace pyinject::test
