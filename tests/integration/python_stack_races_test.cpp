// Python stacks that change while they are read, and the effect of an activation on them.
#include "integration/detection.hpp"
#include "integration/expected_stack.hpp"
#include "support/patience.hpp"
#include "support/sanitizers.hpp"
#include "support/statistics.hpp"

#include <gmock/gmock.h>

#include <charconv>
#include <chrono>
#include <set>
#include <utility>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

namespace pyinject::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using Names = std::vector<std::string>;

class PythonStackRacesTest : public DetectionTest {};

// The CPU time of a process.
class Progress {
 public:
  explicit Progress(base::Pid pid) { EXPECT_EQ(::clock_getcpuclockid(pid.value(), &clock_), 0); }
  // Waits until the process has run since the last call.
  void await() {
    const auto deadline = base::Deadline::after(kPatience);
    const auto before = std::exchange(last_, now());
    while (last_ == before && !deadline.expired()) {
      last_ = now();
    }
    ASSERT_NE(last_, before);
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds now() const {
    timespec time{};
    ::clock_gettime(clock_, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  }

  clockid_t clock_ = 0;
  std::chrono::nanoseconds last_{};
};

TEST_P(PythonStackRacesTest, ReadsOnlyPossibleStacksOfABusyThread) {
  PythonProcess python{GetParam(), R"(
def left(): return inner_left()
def right(x): return inner_right(x, x)
def inner_left(): return 1
def inner_right(x, y):
    for _ in numbers(): pass
def numbers():
    yield from range(2)
def work():
    print('ready', flush=True)
    while True:
        left()
        right(2)
work()
)"};
  const std::set<Names> possible{{"work", "<module>"},
                                 {"left", "work", "<module>"},
                                 {"inner_left", "left", "work", "<module>"},
                                 {"right", "work", "<module>"},
                                 {"inner_right", "right", "work", "<module>"},
                                 {"numbers", "inner_right", "right", "work", "<module>"}};
  auto reader = stack_reader(python.pid());
  const std::vector<base::Tid> tids{base::Tid{python.pid().value()}};
  std::set<Names> seen;
  constexpr int kReads = 2000;
  std::uint64_t read = 0;
  for (int i = 0; i < kReads; ++i) {
    for (const auto& stack : reader.read(tids)) {
      ++read;
      seen.insert(qualnames(reader, stack));
    }
  }
  for (const auto& names : seen) {
    EXPECT_TRUE(possible.contains(names)) << testing::PrintToString(names);
  }
  EXPECT_EQ(read + reader.losses().changed + reader.losses().unreadable, std::uint64_t{kReads});
  EXPECT_GT(read, 0U);
  RecordProperty("read", static_cast<int>(read));
}

// Below run() the stack differs at each read and is so deep that no two reads agree.
TEST_P(PythonStackRacesTest, ReadsTheOuterFramesOfAThreadWhoseInnerOnesNeverSettle) {
  PythonProcess python{GetParam(), R"(
def run():
    print('ready', flush=True)
    while True:
        for _ in numbers(12): pass
def numbers(n):
    yield n
    if n:
        yield from numbers(n - 1)
        call(n)
    yield n
def call(n):
    if n: call(n - 1)
run()
)"};
  auto reader = stack_reader(python.pid());
  const std::vector<base::Tid> tids{base::Tid{python.pid().value()}};
  constexpr std::size_t kReads = 500;
  std::size_t outer = 0;
  std::size_t settled = 0;
  Progress progress{python.pid()};
  for (std::size_t i = 0; i < kReads; ++i) {
    progress.await();  // a thread that has not run would be read at the same instruction again
    for (const auto& stack : reader.read(tids)) {
      auto names = qualnames(reader, stack);
      std::ranges::reverse(names);
      const bool has_outer = names.size() >= 2 && names[0] == "<module>" && names[1] == "run";
      outer += has_outer ? 1 : 0;
      settled += stack.settled ? 1 : 0;
    }
    EXPECT_LE(reader.unread().size(), 1U);
  }
  RecordProperty("outer", std::to_string(outer));
  RecordProperty("settled", std::to_string(settled));
  // The few failed reads are repeated 50 ms later; with sanitizers, a read takes ten times as long.
  EXPECT_TRUE(share_is_at_least({.count = outer, .all = kReads}, kSlowedBySanitizer ? 0.9 : 0.98))
      << settled << " of the stacks had settled";
}

// A thread that is stopped in the middle of a call, where no layout leads to its stack.
TEST_P(PythonStackRacesTest, OpensAReaderOfAThreadThatIsStoppedInTheMiddleOfACall) {
  PythonProcess python{GetParam(), R"(
def called(x): return x
def numbers():
    yield from range(2)
def work():
    print('ready', flush=True)
    while True:
        list(map(called, (1, 2)))
        for _ in numbers(): pass
work()
)"};
  const auto pid = python.pid().value();
  const std::vector<base::Tid> tids{base::Tid{pid}};
  auto reader = stack_reader(python.pid());
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, pid, 0L, 0L), 0);
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, pid, 0L, 0L), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, __WALL), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  constexpr int kSteps = 4000;  // some rounds of the loop
  int steps = 0;
  while (steps < kSteps && !reader.read(tids).empty()) {
    ++steps;
    ASSERT_EQ(::ptrace(PTRACE_SINGLESTEP, pid, 0L, 0L), 0);
    ASSERT_EQ(::waitpid(pid, &status, __WALL), pid);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  RecordProperty("steps", steps);  // 4000: this version has no such instruction
  auto opened = stack_reader(python.pid());
  (void)opened.read();
  EXPECT_EQ(opened.losses().unreadable, steps < kSteps ? 1U : 0U);
}

// A thread that waits in a system call is not in the middle of a Python call.
TEST_P(PythonStackRacesTest, RefusesFramesThatAreNotThoseOfItsVersion) {
  PythonProcess python{GetParam(), R"(
import ctypes, os, sys
read = ctypes.CDLL(None).read
word = ctypes.create_string_buffer(8)
f_frame = object.__basicsize__ + 8  # in PyFrameObject
frame = ctypes.c_void_p.from_address(id(sys._getframe()) + f_frame).value
ctypes.c_void_p.from_address(frame + 8).value = 1  # _PyInterpreterFrame.previous
os.write(1, b'ready\n')
read(0, word, 8)
os._exit(0)
)"};
  const auto made = python::StackReader::of(observe(python.pid()));
  const auto* const why = std::get_if<std::string>(&made);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(*why, "its Python frames are not as this version's should be");
}

// Code objects that live for some microseconds to a fraction of a millisecond (a reader with
// sanitizers is slow), each at the address of the previous one.
TEST_P(PythonStackRacesTest, NamesAreThoseOfOneObject) {
  PythonProcess python{GetParam(), R"(
def work():
    print('ready', flush=True)
    n = 100000
    while True:
        n += 1
        found = {}
        exec(compile('\n' * (n % 100) + f'def made_{n}():\n for _ in range({100 << n % 8}): pass',
                     f'{n}.py', 'exec'), found)
        found[f'made_{n}']()
work()
)"};
  auto reader = stack_reader(python.pid());
  const std::vector<base::Tid> tids{base::Tid{python.pid().value()}};
  int made = 0;
  for (const auto deadline = base::Deadline::after(kPatience); made < 50 && !deadline.expired();) {
    for (const auto& stack : reader.read(tids)) {
      for (const auto& frame : stack.frames) {
        const auto names = reader.names(frame);
        ASSERT_TRUE(names.has_value());
        if (!names->qualname.starts_with("made_")) {
          EXPECT_TRUE(names->qualname == "work" || names->qualname == "<module>")
              << names->qualname;
          continue;
        }
        ++made;
        const auto number = names->qualname.substr(5);
        EXPECT_EQ(names->file, number + ".py");
        EXPECT_EQ(names->first_line, std::stoul(number) % 100 + 1) << names->qualname;
        EXPECT_LE(frame.line - names->first_line, 1U) << names->qualname;
      }
    }
  }
  EXPECT_GE(made, 50);
}

// After the activation, each call has its own activation of the evaluator.
TEST_P(PythonStackRacesTest, EachCallAfterTheActivationIsAGroupOfItsOwn) {
  if (is_only_read(GetParam())) {
    GTEST_SKIP() << "it cannot be activated";
  }
  PythonProcess python{GetParam(), std::string{kTelling} + R"(
def outer():
    inner()
def inner():
    pause()
while True:
    outer()
)"};
  const auto flags = [](const python::ThreadStack& stack) {
    std::vector<bool> outermost;
    for (const auto& frame : stack.frames) {
      outermost.push_back(frame.outermost);
    }
    return outermost;
  };
  auto expected = read_told(python);
  auto reader = stack_reader(python.pid());
  auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_THAT(flags(stacks.front()), ElementsAre(false, false, false, true));
  EXPECT_EQ(told(reader, stacks.front()), expected.frames);

  Attach attach;
  attach.activate(python.pid());
  stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_THAT(flags(stacks.front()), ElementsAre(false, false, false, true))
      << "entered before the activation";
  python.send_line("");
  ASSERT_EQ(python.read_line(), "ready");
  expected = read_told(python);
  stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_THAT(flags(stacks.front()), Each(true));
  EXPECT_EQ(told(reader, stacks.front()), expected.frames);

  attach.deactivate(python.pid());
  python.send_line("");
  ASSERT_EQ(python.read_line(), "ready");
  expected = read_told(python);
  stacks = reader.read();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_THAT(flags(stacks.front()), ElementsAre(false, false, false, true));
}

TEST_P(PythonStackRacesTest, AThreadInTwoInterpretersHasOneStack) {
  PythonProcess python{GetParam(), R"(
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
import os, sys, threading
def enter_sub(sub):
    interpreters.run_string(sub, '''if True:
        import os
        def in_sub():
            os.write(1, b'sub\\n'); os.read(0, 100)
        in_sub()
        ''')
gate = os.pipe()
begun = os.pipe()
def other():
    os.write(begun[1], b'x'); os.read(gate[0], 1)
threading.Thread(target=other, daemon=True).start()
os.read(begun[0], 1)
print('ready', flush=True)
enter_sub(interpreters.create())
)"};
  ASSERT_EQ(python.read_line(), "sub");
  auto reader = stack_reader(python.pid());
  const auto stacks = reader.read();
  ASSERT_EQ(stacks.size(), 2U);
  const auto first = stacks.front().tid.value() == python.pid().value() ? 0U : 1U;
  EXPECT_THAT(qualnames(reader, stacks[first]),
              ElementsAre("in_sub", "<module>", "enter_sub", "<module>"));
  EXPECT_TRUE(stacks[first].frames[1].outermost);
  EXPECT_FALSE(stacks[first].frames[2].outermost);
  EXPECT_EQ(qualnames(reader, stacks[1 - first]).front(), "other");
  EXPECT_EQ(reader.losses().interpreters, 0U);
}

INSTANTIATE_TEST_SUITE_P(Pythons, PythonStackRacesTest,
                         testing::ValuesIn(interpreters({.only_read = true})), InterpreterName{});

}  // namespace
}  // namespace pyinject::test
