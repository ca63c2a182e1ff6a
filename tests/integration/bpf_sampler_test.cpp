// The BPF program on a perf event of the test's own, with every interpreter.
#include "base/text.hpp"
#include "integration/bpf_sampling.hpp"
#include "support/covering.hpp"
#include "support/paths.hpp"
#include "tracee/tracee_memory.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class BpfSamplerTest : public BpfSampling {};

TEST_P(BpfSamplerTest, EveryFrameIsThereWhenItWasEnteredBefore) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
class Made:
    def __init__(self):
        sorted([1], key=self.by_sort)
    def by_sort(self, x):
        for _ in self.generate():
            pass
    def generate(self):
        yield spin()
def make():
    Made()
make()
)"};
  open();
  sample(python.pid());
  collect(100);
  // A function that C code calls starts a group: so do the generator and the constructor on their
  // first call.
  EXPECT_THAT(texts(), Each(std::string{"spin Made.generate | Made.by_sort | Made.__init__ | make "
                                        "<module> | "}));
  const auto counters = final_counters();
  EXPECT_GE(counters.samples, stacks_.size());
  EXPECT_EQ(counters.state_found + counters.state_searched, counters.samples);
  EXPECT_EQ(counters.state_searched, 1U);
  EXPECT_EQ(counters.unreadable + counters.truncated + counters.lost + counters.lost_names, 0U);
  for (const auto& stack : stacks_) {
    EXPECT_EQ(stack.pid, static_cast<std::uint32_t>(python.pid().value()));
    EXPECT_EQ(stack.tid, stack.pid);
    EXPECT_THAT(stack.frames.front().line, AnyOf(7U, 8U));  // in kReady, whose first line is empty
  }
}

std::uint64_t monotonic_now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

TEST_P(BpfSamplerTest, TimesAreThoseOfTheSamplesInTheirOrder) {
  PythonProcess python{GetParam(), std::string{kReady} + "spin()\n"};
  for (const bool by_clock : {false, true}) {
    stacks_.clear();
    const auto begin = monotonic_now();
    open({.by_clock = by_clock});
    sample(python.pid());
    collect(50);
    const auto end = monotonic_now();
    EXPECT_TRUE(std::ranges::is_sorted(stacks_, {}, &sample::Stack::time));
    EXPECT_GT(stacks_.front().time, begin);
    EXPECT_LT(stacks_.back().time, end);
    EXPECT_EQ(sampler_->counters().by_clock == 0, !by_clock);
    for (const auto& stack : stacks_) {
      EXPECT_EQ(stack.by_clock, by_clock);
    }
  }
}

TEST_P(BpfSamplerTest, AForkedChildIsReadFromItsFirstSampleOn) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
def parent():
    ready()
    sys.stdin.readline()
    number = os.getpid()
    if os.fork() == 0:
        child(number)
    spin()
def child(parent):
    while os.getppid() == parent:
        pass
    os._exit(0)
parent()
)"};
  open();
  sample(python.pid());
  python.send_line("fork");
  const auto of_child = [&](const sample::Stack& stack) {
    return stack.pid != static_cast<std::uint32_t>(python.pid().value());
  };
  collect(50, of_child);
  collect(1, [&](const auto& stack) {
    return of_child(stack) && text(stack).starts_with("child parent ");
  });
  std::vector<std::string> children;
  for (const auto& stack : stacks_) {
    if (of_child(stack) && !stack.frames.empty()) {
      children.push_back(text(stack));
    }
  }
  EXPECT_THAT(children, Each(EndsWith("parent <module> | ")));
}

TEST_P(BpfSamplerTest, AProgramThatIsExecutedIsNotTakenForPython) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
ready()
sys.stdin.readline()
os.execv('/bin/sh', ['sh', '-c', 'echo executed; while :; do :; done'])
)"};
  open();
  sample(python.pid());
  python.send_line("go");
  ASSERT_EQ(python.read_line(), "executed");
  const auto samples = sampler_->counters().samples;
  let_run(std::chrono::milliseconds{50});  // 50 samples
  EXPECT_EQ(final_counters().samples, samples);
}

TEST_P(BpfSamplerTest, ADeepStackLosesItsRootAndSaysSo) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
sys.setrecursionlimit(5000)
def recurse(n):
    return spin() if n == 0 else recurse(n - 1)
recurse(600)
)"};
  open();
  sample(python.pid());
  collect(20);
  for (const auto& stack : stacks_) {
    EXPECT_TRUE(stack.truncated);
    ASSERT_EQ(stack.frames.size(), 512U);
    EXPECT_EQ(names_[stack.frames.back().code], "recurse");
  }
  const auto counters = final_counters();
  EXPECT_EQ(counters.truncated, counters.samples);
}

// The frames of the outer functions are in memory that is not readable without a page fault.
TEST_P(BpfSamplerTest, CutsOffUnreadableFrames) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import ctypes
def recurse(n):
    if n != 0:
        return recurse(n - 1)
    frame = sys._getframe(100)
    address = ctypes.c_uint64.from_address(id(frame) + object.__basicsize__ + 8).value
    del frame
    page = ctypes.c_void_p(address & ~4095)
    assert ctypes.CDLL(None).mprotect(page, 4096, 0) == 0
    spin()
recurse(200)
)"};
  open();
  sample(python.pid());
  collect(20);
  for (const auto& stack : stacks_) {
    EXPECT_TRUE(stack.unreadable);
  }
  EXPECT_THAT(texts(), Each(StartsWith("spin recurse recurse recurse ")));
}

// Each call gives the thread a new thread state; that of the last sample has been freed.
TEST_P(BpfSamplerTest, AThreadThatIsPythonsForAMomentIsReadEachTime) {
  if (!GetParam().root.empty()) {
    GTEST_SKIP() << "it does not see the library";
  }
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import ctypes, time
def called():
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
    return 1
ready()
sys.stdin.readline()
callback = ctypes.CFUNCTYPE(ctypes.c_int)(called)
ctypes.CDLL(')" + targets_dir() + R"(/callbacks.so').call_from_a_thread(callback)
)"};
  open();
  sample(python.pid());
  python.send_line("go");
  collect(500, [&](const sample::Stack& stack) { return stack.tid != stack.pid; });
  std::erase_if(stacks_, [](const sample::Stack& stack) { return stack.tid == stack.pid; });
  const auto called =
      std::ranges::count_if(texts(), [](const auto& text) { return text.starts_with("called "); });
  EXPECT_GT(called, static_cast<std::ptrdiff_t>(stacks_.size() * 9 / 10));
}

TEST_P(BpfSamplerTest, AThreadInASubInterpreterHasTheFramesOfBoth) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
program = '''
def inside():
    print("ready", flush=True)
    while True:
        pass
inside()
'''
def outside():
    interpreters.run_string(interpreters.create(), program)
outside()
)"};
  open();
  sample(python.pid());
  collect(20);
  EXPECT_THAT(texts(), Each(AllOf(StartsWith("inside "), HasSubstr("outside <module> |"))));
}

class BpfUnfinishedEvaluator : public BpfSampling {
 protected:
  // WORK: what the program does in C.
  void expect_no_function_that_has_returned(const std::string& work);
};

// Until an evaluator of 3.12 fills in its _PyCFrame, that holds what was on the stack before: here
// the frame of a function that has returned, and whose entry frame is elsewhere.
void BpfUnfinishedEvaluator::expect_no_function_that_has_returned(const std::string& work) {
  PythonProcess python{GetParam(), fmt::format(R"({}
import ctypes, itertools
room = ctypes.create_string_buffer(0x10000)
cframe = (ctypes.addressof(room) & ~7) + 8
def returned(): pass
def adds():
    ready()
    print(ctypes.addressof(room), id(returned.__code__), sep='\n', flush=True)
    {}
adds()
)",
                                               kReady, work)};
  const auto number = [&] { return base::parse_number<std::uint64_t>(python.read_line()).value(); };
  const base::RemoteAddress room{number() & ~std::uint64_t{7}};
  const auto code = number();
  open();
  sample(python.pid());
  const auto adds = [this](const auto& stack) { return text(stack) == "adds <module> | "; };
  collect(20, adds);
  // From now on it is in C, which neither reads nor changes what follows.
  const tracee::TraceeMemory memory{python.pid()};
  const auto at = [&](base::RemoteAddress address) { return memory.read_pointer(address).value(); };
  const auto copy = [&](base::RemoteAddress to, base::RemoteAddress frame) {
    using Bytes = std::array<std::byte, 0x78>;
    ASSERT_TRUE(memory.write_value(to, memory.read_value<Bytes>(frame).value()));
  };
  const auto state = at(at(layout_.interpreters) + layout_.threads_head);
  const auto cframe = at(state + layout_.current_frame);
  const auto frame = at(cframe);
  const auto new_cframe = room + 8;
  const auto left_frame = room + 0x4000;
  const auto left_entry = room + 0x8000;
  copy(left_entry, at(at(frame + layout_.previous) + layout_.previous));
  ASSERT_TRUE(memory.write_value(left_entry + layout_.previous, frame.value()));
  copy(left_frame, frame);
  ASSERT_TRUE(memory.write_value(left_frame + layout_.executable, code));
  ASSERT_TRUE(memory.write_value(left_frame + layout_.previous, left_entry.value()));
  ASSERT_TRUE(memory.write_value(new_cframe, left_frame.value()));
  ASSERT_TRUE(memory.write_value(new_cframe + layout_.previous_cframe, cframe.value()));
  ASSERT_TRUE(memory.write_value(state + layout_.current_frame, new_cframe.value()));
  stacks_.clear();
  collect(200);
  EXPECT_EQ(std::ranges::count_if(stacks_, adds), std::ssize(stacks_)) << texts().back();
}

TEST_P(BpfUnfinishedEvaluator, DoesNotShowAFunctionThatHasReturned) {
  expect_no_function_that_has_returned("sum(itertools.repeat(0))");
}

TEST_P(BpfUnfinishedEvaluator, IsNotTakenForThePreviousOneIfARegisterHasIt) {
  if (!GetParam().root.empty()) {
    GTEST_SKIP() << "it does not see the library";
  }
  expect_no_function_that_has_returned(
      "ctypes.PyDLL('" + targets_dir() +
      "/callbacks.so').keep_in_a_register(ctypes.c_void_p(cframe))");
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfUnfinishedEvaluator,
                         testing::ValuesIn(interpreters({.minor = 12,
                                                         .each_version = Prefer::kChrooted})),
                         InterpreterName{});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BpfUnfinishedEvaluator);

COVER(BpfSamplerTest, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, BpfSamplerTest,
                         testing::ValuesIn(interpreters({.only_read = true})), InterpreterName{});

}  // namespace
}  // namespace pyinject::test
