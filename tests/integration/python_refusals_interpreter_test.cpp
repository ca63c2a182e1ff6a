// Refusals because of the interpreter's state, each produced with a real interpreter.
#include "base/file.hpp"
#include "integration/detection.hpp"
#include "support/paths.hpp"
#include "tracee/tracee_memory.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Pid;
using python::Reason;
using python::TrampolineState;
using testing::HasSubstr;

class InterpreterRefusals : public DetectionTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InterpreterRefusals);
INSTANTIATE_TEST_SUITE_P(Pythons, InterpreterRefusals,
                         testing::ValuesIn(interpreters({.both_ways = true})), InterpreterName{});

TEST(FreeThreadedRefusal, NamesTheBuild) {
  const auto python = find_interpreter({.free_threaded = true, .whole_matrix = true});
  if (!python) {
    GTEST_SKIP() << "no free-threaded interpreter";
  }
  const PythonProcess process{*python, kIdle};
  expect_refused_untouched(process.pid(), Reason::kFreeThreaded,
                           {"free-threaded", "gh-152330", "--engine bpf"});
}

TEST_P(InterpreterRefusals, NamesTheJit) {
  constexpr auto kAsk =
      "import sys\n"
      "print('ready', flush=True)\n"
      "print(hasattr(sys, '_jit') and sys._jit.is_enabled(), flush=True)\n"
      "sys.stdin.read()\n";
  PythonProcess on{with_variable(GetParam(), "PYTHON_JIT=1"), kAsk};
  if (on.read_line() == "True") {
    expect_refused_untouched(on.pid(), Reason::kJitActive, {"JIT", "PYTHON_JIT=0"});
  } else {
    expect_ready(on.pid());  // a build without a JIT ignores the environment
  }
  for (const auto* const value : {"0", ""}) {
    PythonProcess off{with_variable(GetParam(), std::string{"PYTHON_JIT="} + value), kAsk};
    ASSERT_EQ(off.read_line(), "False");
    expect_ready(off.pid());
  }
}

// An evaluator in another library is installed, never called (from then on the program only calls C
// functions), and removed again.
TEST_P(InterpreterRefusals, NamesAForeignEvaluator) {
  PythonProcess python{GetParam(), kForeignEvaluator};
  expect_ready(python.pid());
  python.send_line("put it in");
  const auto said = python.read_line();
  ASSERT_THAT(said, testing::StartsWith("foreign "));
  expect_refused_untouched(
      python.pid(), Reason::kForeignEvaluator,
      {"PEP 523", fmt::format("{:#x}", std::stoull(said.substr(8))), "libc", "disable"});
  python.send_line("take it out");
  ASSERT_EQ(python.read_line(), "own");
  expect_ready(python.pid());
}

std::string thread_with_stack(int kib) {
  return fmt::format(
      "import sys, threading\n"
      "threading.stack_size({} * 1024)\n"
      "def work():\n"
      "    print('ready', flush=True)\n"
      "    sys.stdin.read()\n"
      "threading.Thread(target=work).start()\n",
      kib);
}

TEST_P(InterpreterRefusals, NamesAPathThatIsNotUtf8) {
  PythonOptions options;
  options.child.env["PYTHONPATH"] = "/srv/caf\xe9";
  PythonProcess python{GetParam(), kIdle, options};
  // The first minor version of which no release raises errors in the program.
  constexpr int kRight = 15;
  const auto detection = python::make_detector()->detect(python.pid());
  if (std::holds_alternative<python::Target>(detection)) {
    EXPECT_GE(GetParam().minor, 14);
    expect_ready(python.pid());
  } else {
    EXPECT_LT(GetParam().minor, kRight);
    expect_refused_untouched(python.pid(), Reason::kNameNotUtf8,
                             {"/srv/caf\\xe9 is not UTF-8", "gh-156114", "--engine bpf"});
  }
}

TEST_P(InterpreterRefusals, NamesASmallStack) {
  for (const int kib : {64, 256, 512}) {
    SCOPED_TRACE(kib);
    const PythonProcess small{GetParam(), thread_with_stack(kib)};
    if (since(14)) {
      expect_ready(small.pid());  // these builds check their C stacks
    } else {
      expect_refused_untouched(small.pid(), Reason::kSmallStack,
                               {"KiB", "at least 1 MiB", "threading.stack_size"});
    }
  }
  const PythonProcess enough{GetParam(), thread_with_stack(1024)};
  expect_ready(enough.pid());
}

// The kernel merges a stack with adjacent memory of the same kind into one mapping; since Linux 6.7
// stacks are MADV_NOHUGEPAGE (15).
TEST_P(InterpreterRefusals, NamesASmallStackAmongOtherMemory) {
  PythonProcess python{GetParam(),
                       "import mmap\n"
                       "kept = [mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"
                       " for _ in range(8)]\n"
                       "for one in kept: one.madvise(15)\n" +
                           thread_with_stack(256)};
  if (since(14)) {
    expect_ready(python.pid());
  } else {
    expect_refused_untouched(python.pid(), Reason::kSmallStack, {"KiB"});
  }
}

TEST_P(InterpreterRefusals, WarnsOfSubInterpreters) {
  PythonProcess python{GetParam(),
                       "import sys\n"
                       "try: import _interpreters as i\n"
                       "except ImportError: import _xxsubinterpreters as i\n"
                       "one = i.create()\n"
                       "print('ready', flush=True)\n"
                       "sys.stdin.readline()\n"
                       "i.destroy(one)\n"
                       "print('destroyed', flush=True)\n"
                       "sys.stdin.readline()\n"};
  Attach attach;
  EXPECT_THAT(attach.detect(python.pid()).warnings,
              testing::ElementsAre(HasSubstr("sub-interpreters")));
  python.send_line("destroy it");
  ASSERT_EQ(python.read_line(), "destroyed");
  EXPECT_THAT(attach.detect(python.pid()).warnings, testing::IsEmpty());
}

// Waits while the contents of the modules are destroyed.
TEST_P(InterpreterRefusals, NamesAFinalizingInterpreter) {
  PythonProcess python{GetParam(),
                       "import os, sys\n"
                       "class Last:\n"
                       "    def __del__(self, write=os.write, read=os.read):\n"
                       "        write(1, b'last\\n')\n"
                       "        read(0, 100)\n"
                       "last = Last()\n"
                       "print('ready', flush=True)\n"
                       "os.read(0, 100)\n"};
  expect_ready(python.pid());
  python.send_line("end");
  ASSERT_EQ(python.read_line(), "last");
  expect_refused_untouched(python.pid(), Reason::kFinalizing, {"shutting down"});
}

// CPython imports `encodings` before it is ready.
TEST_P(InterpreterRefusals, NamesAnUninitializedInterpreter) {
  const SeenDirectory directory{GetParam()};
  fs::create_directory(directory.here("encodings"));
  directory.write("encodings/__init__.py",
                  "import posix, sys\n"
                  "posix.write(1, b'ready\\n')\n"
                  "posix.read(0, 100)\n"
                  "sys.path.pop(0)\n"
                  "del sys.modules['encodings']\n"
                  "import encodings\n");
  PythonProcess python{with_variable(GetParam(), "PYTHONPATH=" + directory.seen("")),
                       "print('started', flush=True)\nimport sys\nsys.stdin.read()\n"};
  expect_refused_untouched(python.pid(), Reason::kNotInitialized, {"not initialized", "try again"});
  const auto initialized = refused(python.pid()).initialized;
  const tracee::TraceeMemory memory{python.pid()};
  const auto observer = python::make_detector(python::Purpose::kObserve);
  ASSERT_TRUE(initialized);
  EXPECT_EQ(initialized->value() % 4, 0U);
  EXPECT_EQ(memory.read_value<std::int32_t>(*initialized), 0);
  EXPECT_TRUE(std::holds_alternative<python::Target>(observer->detect(python.pid())))
      << "it already runs byte code";
  python.send_line("go on");
  ASSERT_EQ(python.read_line(), "started");
  EXPECT_EQ(memory.read_value<std::int32_t>(*initialized), 1);
  expect_ready(python.pid());
}

TEST_P(InterpreterRefusals, NamesStrictSeccomp) {
  PythonProcess python{GetParam(),
                       "import ctypes, os\n"
                       "write, read, prctl = os.write, os.read, ctypes.CDLL(None).prctl\n"
                       "write(1, b'ready\\n')\n"
                       "read(0, 100)\n"
                       "prctl(22, 1)\n"  // PR_SET_SECCOMP, SECCOMP_MODE_STRICT
                       "write(1, b'strict\\n')\n"
                       "read(0, 100)\n"};
  expect_ready(python.pid());
  python.send_line("be strict");
  ASSERT_EQ(python.read_line(), "strict");
  expect_refused_untouched(python.pid(), Reason::kSeccomp, {"strict", "--engine bpf"});
  python.expect_alive();
}

}  // namespace
}  // namespace pyinject::test
