// Exits of programs with daemon threads inside trampolines: CPython 3.12 to 3.14.2 unmap the
// trampolines while the threads use them (cpython gh-143228).
#include "base/text.hpp"
#include "procfs/tasks.hpp"
#include "support/attach.hpp"
#include "support/covering.hpp"
#include "support/python_process.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace pyinject::test {
namespace {

using base::Deadline;

class PythonExitTest : public testing::TestWithParam<Interpreter> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonExitTest);
COVER(PythonExitTest, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonExitTest, testing::ValuesIn(interpreters()),
                         InterpreterName{});

enum class Leave { kOn, kOff };

// Four threads that never leave the trampoline of `hold`. After the end of the interpreter, the C
// library waits for a line: meanwhile the threads wake up, request the GIL, and are terminated.
constexpr auto kHolds = R"(
import ctypes, sys, threading, time
ctypes.pythonapi.Py_AtExit(ctypes.cast(ctypes.CDLL(None).getchar, ctypes.c_void_p))
entered = threading.Semaphore(0)
def hold():
    entered.release()
    while True:
        time.sleep(0.3)
print('ready', flush=True)
sys.stdin.readline()
for _ in range(4):
    threading.Thread(target=hold, daemon=True).start()
for _ in range(4):
    entered.acquire()
print('inside', flush=True)
sys.stdin.readline()
)";

// True if only its main thread is left or it has exited.
bool threads_end(PythonProcess& python) {
  const auto deadline = Deadline::after(kPatience);
  while (python.child().running() && procfs::list_tasks(python.pid()).size() > 1) {
    if (deadline.expired()) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

void expect_exit_of_held(const Interpreter& interpreter, Leave leave) {
  PythonProcess python{interpreter, kHolds};
  Attach attach;
  EXPECT_TRUE(attach.activate(python.pid()).notes.empty());
  python.send_line("go");
  ASSERT_EQ(python.read_line(), "inside");
  if (leave == Leave::kOff) {
    EXPECT_EQ(attach.deactivate(python.pid()).note, "");
  }
  python.send_line("end");
  // Later versions let daemon threads hang instead.
  if (interpreter.minor < 14) {
    ASSERT_TRUE(threads_end(python));
  }
  python.child().close_stdin();
  EXPECT_EQ(python.child().wait(Deadline::after(kPatience)), ExitStatus{}) << python.child().err();
}

TEST_P(PythonExitTest, KeepsTrampolinesOfDaemonThreadsMapped) {
  expect_exit_of_held(GetParam(), Leave::kOn);
}
TEST_P(PythonExitTest, KeepsTrampolinesOfDaemonThreadsMappedAfterSwitchingOff) {
  expect_exit_of_held(GetParam(), Leave::kOff);
}

constexpr auto kDeepAndBusy = R"(
import sys, threading, time
rounds = [0] * 4
def f(n):
    return n if n == 0 else f(n - 1)
def work(number):
    while True:
        f(20)
        rounds[number] += 1
for number in range(len(rounds)):
    threading.Thread(target=work, args=(number,), daemon=True).start()
print('ready', flush=True)
for line in sys.stdin:
    if line == 'end\n':
        break
    before = list(rounds)
    while any(now < then + 20 for now, then in zip(rounds, before)):
        time.sleep(0.001)
    print('worked', flush=True)
)";

// Without the fix, 1 of 8 crashes by chance. PYINJECT_EXITS: the number of exits of each kind.
int exits() {
  const char* const text = std::getenv("PYINJECT_EXITS");
  return base::parse_number<int>(text == nullptr ? "" : text).value_or(3);
}

void expect_exits_of_busy(const Interpreter& interpreter, Leave leave) {
  int killed = 0;
  const int all = exits();
  for (int i = 0; i < all; ++i) {
    PythonProcess python{interpreter, kDeepAndBusy};
    Attach attach;
    attach.activate(python.pid());
    python.send_line("work");
    ASSERT_EQ(python.read_line(), "worked");
    if (leave == Leave::kOff) {
      attach.deactivate(python.pid());
    }
    python.send_line("end");
    const auto status = python.child().wait(Deadline::after(kPatience));
    ASSERT_TRUE(status) << "the program does not exit";
    killed += status->signal != 0 ? 1 : 0;
  }
  EXPECT_EQ(killed, 0) << "of " << all;
}

TEST_P(PythonExitTest, SurvivesWithBusyDaemonThreads) {
  expect_exits_of_busy(GetParam(), Leave::kOn);
}
TEST_P(PythonExitTest, SurvivesWithBusyDaemonThreadsAfterSwitchingOff) {
  expect_exits_of_busy(GetParam(), Leave::kOff);
}

// 4,000 to 6,000 functions fill an arena.
constexpr auto kGrows = R"(
import ctypes, sys, threading, time
ctypes.pythonapi.Py_AtExit(ctypes.cast(ctypes.CDLL(None).getchar, ctypes.c_void_p))
entered = threading.Semaphore(0)
def hold():
    entered.release()
    while True:
        time.sleep(0.3)
print('ready', flush=True)
sys.stdin.readline()
names = {}
for i in range(7000):
    exec(f'def g{i}(): pass\ng{i}()', names)
threading.Thread(target=hold, daemon=True).start()
entered.acquire()
print('inside', flush=True)
sys.stdin.readline()
)";

TEST_P(PythonExitTest, KeepsLaterTrampolinesMapped) {
  for (const bool when_switched_off : {false, true}) {
    PythonProcess python{GetParam(), kGrows};
    Attach attach;
    attach.activate(python.pid());
    python.send_line("go");
    ASSERT_EQ(python.read_line(), "inside");
    if (when_switched_off) {
      EXPECT_EQ(attach.deactivate(python.pid()).note, "");
    } else {
      EXPECT_FALSE(attach.injector().keep_trampolines(attach.detect(python.pid()), kPatience));
    }
    python.send_line("end");
    if (GetParam().minor < 14) {
      ASSERT_TRUE(threads_end(python));
    }
    python.child().close_stdin();
    EXPECT_EQ(python.child().wait(Deadline::after(kPatience)), ExitStatus{})
        << python.child().err();
  }
}

}  // namespace
}  // namespace pyinject::test
