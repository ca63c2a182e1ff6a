// What the built tool says about targets and surroundings that are not as they should be: one
// interpreter each. The wrong command lines are in cli_record_test.cpp.
#include "integration/detection.hpp"
#include "integration/tracer.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/procfs/stat.hpp"
#include "pyinject/session/options.hpp"
#include "support/asleep.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/snapshot.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using base::Pid;
using session::kFailure;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string say(Pid pid) { return std::to_string(pid.value()); }

class CliBadInput : public testing::Test {
 protected:
  void SetUp() override {
    if (find_interpreters().empty()) {
      GTEST_SKIP() << "no interpreter to record is here";
    }
  }
  [[nodiscard]] static const Interpreter& any() { return find_interpreters().front(); }
  [[nodiscard]] std::string data() const { return folder_ / "data"; }

  [[nodiscard]] std::vector<std::string> record_argv(Pid pid, std::vector<std::string> options = {},
                                                     std::vector<std::string> command = {
                                                         "true"}) const {
    std::vector<std::string> argv{tool(), "record", "-p", say(pid), "-o", data()};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.emplace_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  [[nodiscard]] bool nothing_recorded() const { return fs::is_empty(folder_.path()); }

  void expect_failure(const RunResult& result, std::initializer_list<std::string> parts) const {
    EXPECT_EQ(result.status, (ExitStatus{.code = kFailure}));
    EXPECT_THAT(result.err, HasSubstr("perf-pyinject: error: "));
    for (const auto& part : parts) {
      EXPECT_THAT(result.err, HasSubstr(part));
    }
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(nothing_recorded());
  }
  // REASON: its name in messages; PARTS: of what was found and the remedy.
  void expect_refused(Pid pid, const std::string& reason,
                      std::initializer_list<std::string> parts) const {
    const auto result = run(record_argv(pid));
    expect_failure(result, parts);
    EXPECT_THAT(result.err,
                testing::ContainsRegex("error: pid " + say(pid) + ": .*\\(" + reason + "\\)"));
  }
  void expect_refused_unharmed(Pid pid, const std::string& reason,
                               std::initializer_list<std::string> parts) const {
    const Untouched before{pid};
    expect_refused(pid, reason, parts);
    EXPECT_THAT(before.differences(), IsEmpty());
  }

  TempDir folder_;
};

// A program that goes on with its work, and says what it is asked.
constexpr const char* kBusy = R"(
import sys, threading
def work():
    while True:
        sum(i for i in range(1000))
threading.Thread(target=work, daemon=True).start()
print('ready', flush=True)
for line in sys.stdin:
    print(line.strip(), sys.is_stack_trampoline_active(), flush=True)
)";

// It works and no trampoline is on.
void expect_as_before(PythonProcess& python) {
  python.send_line("alive");
  EXPECT_EQ(python.read_line(), "alive False");
}

TEST_F(CliBadInput, ItsOwnPid) {
  const auto result =
      run({"sh", "-c", R"(exec "$0" record -p $$ -o "$1" -- true)", tool(), data()});
  expect_failure(result, {"pid ", "perf-pyinject itself", "(own_process)"});
}

TEST_F(CliBadInput, APidWithoutProcess) {
  ChildProcess child{{"true"}};
  ASSERT_TRUE(child.wait(Deadline::after(kPatience)));
  expect_refused(child.pid(), "no_such_process", {"no such process", "pgrep"});
}

TEST_F(CliBadInput, AZombie) {
  PythonProcess python{any(), kIdle};
  python.child().close_stdin();
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(python.pid().value()), &info, WEXITED | WNOWAIT), 0);
  expect_refused(python.pid(), "zombie", {"zombie", "parent"});
}

TEST_F(CliBadInput, AProcessWithoutPython) {
  ChildProcess child{{"cat"}};
  child.write("ready\n");
  ASSERT_EQ(child.read_line(Deadline::after(kPatience)), "ready");
  expect_refused_unharmed(child.pid(), "not_python", {"no CPython"});
  child.write("still there\n");
  EXPECT_EQ(child.read_line(Deadline::after(kPatience)), "still there");
}

// Such as Debian 12's own.
TEST_F(CliBadInput, AnOldPython) {
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

TEST_F(CliBadInput, AnotherUsersProcess) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "being another user needs root";
  }
  PythonProcess python{any(), kBusy};
  const SeenFolder seen{Interpreter{}};  // one that everybody may enter
  fs::copy_file(tool(), seen.here("tool"));
  auto argv = record_argv(python.pid());
  argv.front() = seen.here("tool");
  RunOptions options;
  options.child.uid = kNobody;
  const auto result = run(argv, options);
  expect_failure(result, {"pid " + say(python.pid()) + ": ", "(no_permission)", "uid 0",
                          "CAP_SYS_PTRACE", "Permission denied"});
  expect_as_before(python);
}

TEST_F(CliBadInput, TracedByStrace) {
  PythonProcess python{any(), kBusy};
  {
    const Tracer tracer{strace_of(python.pid())};
    if (!tracer.attached()) {
      GTEST_SKIP() << "no strace that attaches: " << tracer.said();
    }
    expect_refused(python.pid(), "traced", {"pid " + say(tracer.pid()) + " (strace)", "end that"});
  }
  expect_as_before(python);
}

TEST_F(CliBadInput, TracedByGdb) {
  PythonProcess python{any(), kBusy};
  {
    const Tracer tracer{gdb_of(python.pid())};
    if (!tracer.attached()) {
      GTEST_SKIP() << "no gdb that attaches: " << tracer.said();
    }
    expect_refused(python.pid(), "traced", {"pid " + say(tracer.pid()), "gdb", "end that"});
  }
  expect_as_before(python);
}

TEST_F(CliBadInput, TheJitIsOn) {
  for (const auto& interpreter : find_interpreters()) {
    if (interpreter.minor < 14) {
      continue;
    }
    PythonProcess python{with_variable(interpreter, "PYTHON_JIT=1"),
                         "import sys\n"
                         "print('ready', flush=True)\n"
                         "print(hasattr(sys, '_jit') and sys._jit.is_enabled(), flush=True)\n"
                         "sys.stdin.read()\n"};
    if (python.read_line() != "True") {
      continue;
    }
    SCOPED_TRACE(interpreter.name);
    expect_refused_unharmed(python.pid(), "jit_active", {"JIT", "PYTHON_JIT=0"});
    python.expect_alive();
    return;
  }
  GTEST_SKIP() << "no interpreter here has a JIT";
}

TEST_F(CliBadInput, AForeignEvaluator) {
  PythonProcess python{any(), kForeignEvaluator};
  python.send_line("put it in");
  ASSERT_THAT(python.read_line(), testing::StartsWith("foreign "));
  expect_refused_unharmed(python.pid(), "foreign_evaluator", {"PEP 523", "libc", "switch off"});
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

TEST_F(CliBadMap, ASymbolicLink) {
  start(any());
  const SeenFolder elsewhere{any()};
  elsewhere.write("precious", "kept");
  fs::create_symlink(elsewhere.seen("precious"), map_);
  expect_refused_unharmed(python_->pid(), "map_not_regular", {seen_, "symbolic link", "remove it"});
  EXPECT_EQ(base::read_file(elsewhere.here("precious")), "kept");
}

TEST_F(CliBadMap, AFileOfSomebodyElse) {
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

TEST_F(CliBadMap, AReadOnlyTmp) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  start(wrapped(any(), {"unshare", "--mount", "sh", "-c",
                        "mount -t tmpfs -o ro none " + any().root + "/tmp && exec \"$@\"", "sh"}));
  expect_refused_unharmed(python_->pid(), "map_directory", {"/tmp is read-only", "mount a tmpfs"});
}

TEST_F(CliBadInput, NoPerfOnPath) {
  PythonProcess python{any(), kIdle};
  const TempDir empty;
  RunOptions options;
  options.child.env["PATH"] = empty.path();
  options.child.unset = {"PERF"};
  wait_until_asleep(python.pid());
  const auto before = take_snapshot(python.pid());
  // The command is found without PATH.
  expect_failure(run(record_argv(python.pid(), {}, {tool(), "--version"}), options),
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
  fs::permissions(perf, fs::perms::owner_all);
  wait_until_asleep(python.pid());
  const auto before = take_snapshot(python.pid());
  expect_failure(run(record_argv(python.pid(), {"--perf", perf, "--call-graph", "fp"})),
                 {"perf record failed: exit status 3", "perf: out of order"});
  EXPECT_THAT(differences(before, take_snapshot(python.pid())), IsEmpty());
}

TEST_F(CliBadInput, AnOutputThatCannotBeWritten) {
  PythonProcess python{any(), kBusy};
  const auto output = folder_ / "missing/data";
  const auto result = run({tool(), "record", "-p", say(python.pid()), "-o", output, "--", "true"});
  expect_failure(result, {"perf record failed", output, "No such file or directory"});
  expect_as_before(python);
}

TEST_F(CliBadInput, AFullDisk) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  PythonProcess python{any(), kBusy};
  std::vector<std::string> argv{
      "unshare",     "--mount", "sh", "-c", R"(mount -t tmpfs -o size=64k none "$0" && exec "$@")",
      folder_.path()};
  const auto record =
      record_argv(python.pid(), {"--call-graph", "fp", "-F", "4999"}, {"sleep", "600"});
  argv.insert(argv.end(), record.begin(), record.end());
  expect_failure(run(argv), {"no space left"});
  expect_as_before(python);
}

// Stays in read(2) with the GIL held, so that nothing that is asked of it is done.
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
  // With a call graph chosen, nothing touches it before the activation.
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
                 {"pid " + say(python.pid()) + ": it has ended", "(exited)"});
}

TEST_F(CliBadInput, TheTargetExitsDuringTheRecording) {
  PythonProcess python{any(), kBusy};
  const auto result = run(record_argv(
      python.pid(), {}, {"sh", "-c", "kill -9 " + say(python.pid()) + "; exec sleep 600"}));
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the target exited before the recording was to end"));
  EXPECT_THAT(result.err, HasSubstr("next: perf report -i " + data()));
  EXPECT_THAT(result.err, Not(HasSubstr("error: ")));
  EXPECT_EQ(run({"perf", "script", "-i", data(), "-F", "ip,sym"}).status, ExitStatus{});
}

// With another one, so that it is the command that ends the recording.
TEST_F(CliBadInput, TheTargetExitsBeforeDeactivation) {
  PythonProcess stays{any(), kBusy};
  PythonProcess goes{any(), kBusy};
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
