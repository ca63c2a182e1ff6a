// Refusals because of the process, each produced with a real process.
#include "integration/detection.hpp"
#include "integration/tracer.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using base::Pid;
using python::Reason;
using testing::AllOf;
using testing::HasSubstr;

std::string say_pid(Pid pid) { return std::to_string(pid.value()); }

python::Detection detect(Pid pid) { return python::make_detector()->detect(pid); }

TEST(PidRefusals, NamesAPidWithoutAProcess) {
  ChildProcess child{{"true"}};
  ASSERT_TRUE(child.wait(Deadline::after(kPatience)));
  expect_refused(detect(child.pid()), Reason::kNoSuchProcess, {"no such process"});
  // Above the kernel's PID_MAX_LIMIT.
  expect_refused(detect(Pid{(1 << 22) + 1}), Reason::kNoSuchProcess, {"no such process"});
  expect_refused(detect(Pid{0}), Reason::kNoSuchProcess, {"no such process"});
  expect_refused(detect(Pid{-1}), Reason::kNoSuchProcess, {"no such process"});
}

TEST(PidRefusals, NamesThisProcess) {
  expect_refused(detect(Pid{::getpid()}), Reason::kOwnProcess, {"perf-pyinject itself"});
}

TEST(PidRefusals, NamesAKernelThread) {
  const auto stat = procfs::read_stat(Pid{2});
  if (!stat || !stat->kernel_thread()) {
    GTEST_SKIP() << "no kernel thread is visible here: a pid namespace of its own";
  }
  expect_refused(detect(Pid{2}), Reason::kKernelThread, {"kernel thread"});
}

// perf itself may be linked to a libpython of any version: from 3.12 on, it could still start it.
TEST(PidRefusals, DoesNotTakePerfForAPython) {
  ChildProcess perf{{"perf", "stat", "-e", "cpu-clock", "--", "sh", "-c", "echo ready; read word"}};
  ASSERT_EQ(perf.read_line(Deadline::after(kPatience)), "ready");
  const auto reason_of = [](const python::Detection& detection) {
    const auto* const refused = std::get_if<python::Refused>(&detection);
    return refused == nullptr ? "" : std::string{python::name(refused->refusal.reason)};
  };
  const auto right = testing::AnyOf("not_python", "not_initialized");
  EXPECT_THAT(reason_of(detect(perf.pid())), right);
  const auto observer = python::make_detector(python::Purpose::kObserve);
  const auto deadline = Deadline::after(kPatience);
  auto observed = reason_of(observer->detect(perf.pid()));
  while (observed.empty() && !deadline.expired()) {  // while it could be starting
    ::sched_yield();
    observed = reason_of(observer->detect(perf.pid()));
  }
  EXPECT_THAT(observed, right);
  perf.close_stdin();
}

TEST(PidRefusals, NamesAProcessWithoutPython) {
  ChildProcess child{{"cat"}};
  child.write("ready\n");
  ASSERT_EQ(child.read_line(Deadline::after(kPatience)), "ready");
  expect_refused_untouched(child.pid(), Reason::kNotPython, {"not a Python process"});
  child.close_stdin();
  EXPECT_TRUE(child.wait(Deadline::after(kPatience)));
}

TEST(PidRefusals, NamesAnOldPython) {
  std::vector<std::string> old{"/usr/bin/python3"};
  std::error_code ignored;
  const char* const home = std::getenv("HOME");
  for (const auto& entry : fs::directory_iterator{
           fs::path{home == nullptr ? "/" : home} / ".pyenv/versions", ignored}) {
    old.push_back(entry.path() / "bin/python");
  }
  int seen = 0;
  for (const auto& path : old) {
    if (!fs::exists(path)) {
      continue;
    }
    ChildProcess python{
        {path, "-c",
         "import sys, platform; sys.stdout.write(platform.python_version() + chr(10))\n"
         "sys.stdout.flush(); sys.stdin.read()"}};
    const auto version = python.read_line(Deadline::after(kPatience)).value_or("");
    const bool three = version.starts_with("3.");
    const int minor = version.size() > 2 ? std::atoi(version.c_str() + 2) : 0;
    if (three && minor >= 12) {
      continue;
    }
    SCOPED_TRACE(version);
    ++seen;
    expect_refused_untouched(python.pid(), Reason::kPythonTooOld,
                             {minor == 11 ? "it is Python " + version : "older than Python 3.11",
                              "came with Python 3.12", "use py-spy or austin"});
    const auto detection = detect(python.pid());
    EXPECT_THAT(std::get<python::Refused>(detection).interpreter, HasSubstr("python"));
  }
  if (seen == 0) {
    GTEST_SKIP() << "no Python older than 3.12 is here";
  }
}

class ProcessRefusals : public DetectionTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProcessRefusals);
INSTANTIATE_TEST_SUITE_P(Pythons, ProcessRefusals,
                         testing::ValuesIn(interpreters({.both_ways = true})), InterpreterName{});

TEST_P(ProcessRefusals, NamesAThread) {
  PythonProcess python{GetParam(),
                       "import sys, threading\n"
                       "def work():\n"
                       "    print('ready', flush=True)\n"
                       "    print(threading.get_native_id(), flush=True)\n"
                       "    sys.stdin.read()\n"
                       "threading.Thread(target=work).start()\n"};
  const Pid thread{std::stoi(python.read_line())};
  expect_refused(detect(thread), Reason::kNoSuchProcess,
                 {"thread of process " + say_pid(python.pid()), "-p " + say_pid(python.pid())});
  expect_ready(python.pid());
}

TEST_P(ProcessRefusals, NamesAZombie) {
  PythonProcess python{GetParam(), kIdle};
  expect_ready(python.pid());
  python.child().close_stdin();
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(python.pid().value()), &info, WEXITED | WNOWAIT), 0);
  expect_refused(detect(python.pid()), Reason::kZombie, {"zombie", "parent"});
}

// Its first thread has exited, which CPython does not notice.
TEST_P(ProcessRefusals, NamesAnExitedMainThread) {
  PythonProcess python{GetParam(),
                       "import ctypes, os, sys, threading\n"
                       "def work():\n"
                       "    print('ready', flush=True)\n"
                       "    sys.stdin.read()\n"
                       "    os._exit(0)\n"
                       "threading.Thread(target=work).start()\n"
                       "ctypes.CDLL(None).syscall(60, 0)\n"};
  const auto deadline = Deadline::after(kPatience);
  while (procfs::read_stat(python.pid())->state != 'Z' && !deadline.expired()) {
    ::sched_yield();
  }
  expect_refused_untouched(python.pid(), Reason::kMainThreadGone, {"main thread"});
}

TEST_P(ProcessRefusals, NamesAnotherUsersProcess) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "being another user needs root";
  }
  const PythonProcess python{GetParam(), kIdle};
  EXPECT_THAT(detect_as(kNobody, python.pid()),
              AllOf(HasSubstr("no_permission"), HasSubstr("CAP_SYS_PTRACE"), HasSubstr("uid 0"),
                    HasSubstr("Permission denied")));
  expect_ready(python.pid());
}

// Drops its rights as services do. The kernel then protects it like a set-uid program.
constexpr auto kDropped =
    "import ctypes, os, sys\n"
    "os.setgroups([])\n"
    "os.setresgid(65534, 65534, 65534)\n"
    "os.setresuid(65534, 65534, 65534)\n"
    "if sys.argv[1:]: ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"  // PR_SET_DUMPABLE
    "print('ready', flush=True)\n"
    "sys.stdin.read()\n";

TEST_P(ProcessRefusals, NamesAProcessThatIsNotDumpable) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "being another user needs root";
  }
  const PythonProcess python{GetParam(), kDropped};
  EXPECT_THAT(
      detect_as(kNobody, python.pid()),
      AllOf(HasSubstr("no_permission"), HasSubstr("not dumpable"), HasSubstr("CAP_SYS_PTRACE")));
  expect_ready(python.pid());
}

// The process belongs to the user, but its files do not.
TEST_P(ProcessRefusals, NamesUnreadableFiles) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "being another user needs root";
  }
  const SeenDirectory directory{GetParam()};
  PythonOptions options;
  options.args = {"dumpable"};
  const PythonProcess python{with_copy(GetParam(), directory, "python3"), kDropped, options};
  fs::permissions(directory.here("python3"), fs::perms::owner_all);
  EXPECT_THAT(
      detect_as(kNobody, python.pid()),
      AllOf(HasSubstr("no_permission"), HasSubstr("python3"), HasSubstr("Permission denied")));
  if (GetParam().root.empty() && is_library(interpreter_file(GetParam()))) {
    // Its other libraries are the system's.
    fs::permissions(directory.here("python3"), fs::perms::all);
    EXPECT_EQ(detect_as(kNobody, python.pid()), "ready");
  }
}

TEST_P(ProcessRefusals, NamesATracer) {
  const PythonProcess python{GetParam(), kIdle};
  {
    const Tracer tracer{{targets_dir() + "/tracer", say_pid(python.pid())}};
    ASSERT_TRUE(tracer.attached()) << tracer.said();
    expect_refused_untouched(python.pid(), Reason::kTraced,
                             {"pid " + say_pid(tracer.pid()) + " (tracer)", "detach that"});
  }
  expect_ready(python.pid());
}

TEST_P(ProcessRefusals, NamesStrace) {
  const PythonProcess python{GetParam(), kIdle};
  {
    const Tracer tracer{strace_of(python.pid())};
    if (!tracer.attached()) {
      GTEST_SKIP() << "no strace that attaches: " << tracer.said();
    }
    expect_refused(detect(python.pid()), Reason::kTraced,
                   {"pid " + say_pid(tracer.pid()) + " (strace)"});
  }
  expect_ready(python.pid());
}

TEST_P(ProcessRefusals, NamesGdb) {
  PythonProcess python{GetParam(), kIdle};
  {
    const Tracer tracer{gdb_of(python.pid())};
    if (!tracer.attached()) {
      GTEST_SKIP() << "no gdb that attaches: " << tracer.said();
    }
    expect_refused(detect(python.pid()), Reason::kTraced, {"pid " + say_pid(tracer.pid()), "gdb"});
  }
  expect_ready(python.pid());
}

// Any user can start a program whose name ends up in our messages.
TEST_P(ProcessRefusals, MakesProcessNamesPrintable) {
  const PythonProcess python{GetParam(), kIdle};
  const SeenDirectory directory{Interpreter{}};
  const std::string name = "a\n\x1b[2Jb\x07";
  fs::copy_file(targets_dir() + "/tracer", directory.here(name));
  const Tracer tracer{{directory.here(name), say_pid(python.pid())}};
  ASSERT_TRUE(tracer.attached()) << tracer.said();
  expect_refused(detect(python.pid()), Reason::kTraced, {"pid " + say_pid(tracer.pid()), "[2Jb"});
}

}  // namespace
}  // namespace pyinject::test
