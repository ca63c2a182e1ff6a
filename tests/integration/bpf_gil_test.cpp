// The holder of the GIL as the BPF program sees it.
#include "integration/bpf_sampling.hpp"
#include "tracee/tracee_memory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pyinject::test {
namespace {

using sample::Gil;

class BpfGilTest : public BpfSampling {
 protected:
  [[nodiscard]] std::size_t count(sample::Gil gil) const {
    return static_cast<std::size_t>(std::ranges::count(stacks_, gil, &sample::Stack::gil));
  }
  [[nodiscard]] base::RemoteAddress gil_of(base::Pid pid) const {
    const tracee::TraceeMemory memory{pid};
    const auto interpreter = memory.read_pointer(layout_.interpreters);
    const auto gil = interpreter ? memory.read_pointer(*interpreter + layout_.gil) : std::nullopt;
    return gil.value_or(base::RemoteAddress{});
  }
  void expect_held() {
    std::erase_if(stacks_, [this](const auto& stack) { return !text(stack).starts_with("spin "); });
    EXPECT_GT(count(sample::Gil::kHeld), stacks_.size() * 9 / 10);
    EXPECT_EQ(count(sample::Gil::kUnknown), 0U);
  }
};

TEST_P(BpfGilTest, MarksTheHolder) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import hashlib, threading
data = bytes(1 << 22)
def without():
    while True:
        hashlib.sha256(data)
threading.Thread(target=without, daemon=True).start()
spin()
)"};
  open({.gil = true});
  sample(python.pid());
  collect(100);
  expect_held();
}

// In 3.12, a thread keeps its state in the sub-interpreter, which belongs to the newest
// interpreter.
TEST_P(BpfGilTest, MarksAHolderThatHasCreatedASubInterpreter) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
kept = interpreters.create()
spin()
)"};
  open({.gil = true});
  sample(python.pid());
  collect(100);
  expect_held();
}

TEST_P(BpfGilTest, MarksAThreadThatWaits) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import threading
def other():
    while True:
        pass
threading.Thread(target=other, daemon=True).start()
spin()
)"};
  open({.gil = true});
  sample(python.pid(), SampledEvent::kSwitches);
  collect(20, [](const auto& stack) { return stack.gil == sample::Gil::kWaitedFor; });
}

// Makes the system call that releasing the GIL makes: a wakeup of one of the GIL's futexes.
TEST_P(BpfGilTest, DoesNotMarkAThreadThatWakesOthers) {
  PythonProcess python{GetParam(), std::string{kReady} + R"(
import ctypes
wake = ctypes.CDLL(None).syscall
ready()
gil = ctypes.c_void_p(int(sys.stdin.readline()))
while True:
    wake(202, gil, 1 | 128, 1, None, None, 0)
)"};
  open({.gil = true});
  sample(python.pid());
  const auto gil = gil_of(python.pid());
  ASSERT_FALSE(gil.is_null());
  python.send_line(std::to_string(gil.value()));
  collect(500);
  // ctypes releases the GIL for the call.
  collect(50, [](const auto& stack) { return stack.gil == sample::Gil::kNone; });
  EXPECT_EQ(count(sample::Gil::kWaitedFor), 0U);
}

// A musl-style condition variable, at a place that glibc does not read while there are no waiters.
// NODE is where the program waits: `newer`, the head of the list, `older`, the next one, or
// `other`, which is in no list.
class BpfGilListTest : public BpfGilTest {
 protected:
  void wait_in(const std::string& node, std::uint64_t condition, sample::Gil wanted) {
    PythonProcess python{GetParam(), std::string{kReady} + R"(
import ctypes
call = ctypes.CDLL(None).syscall
nodes = {name: (ctypes.c_uint64 * 4)() for name in ('newer', 'older', 'other')}
newest = ctypes.addressof(nodes['newer'])
nodes['older'][0] = newest
millisecond = (ctypes.c_uint64 * 2)(0, 1000000)
ready()
head, name = sys.stdin.readline().split()
ctypes.c_uint64.from_address(int(head)).value = newest
futex = ctypes.c_void_p(ctypes.addressof(nodes[name]) + 20)
while True:
    call(202, futex, 128, 0, millisecond, None, 0)
)"};
    open({.gil = true});
    sample(python.pid(), SampledEvent::kSwitches);
    const auto gil = gil_of(python.pid());
    ASSERT_FALSE(gil.is_null());
    const auto head = gil.value() + layout_.gil_locked + condition + 8;
    python.send_line(fmt::format("{} {}", head, node));
    collect(50, [wanted](const auto& stack) { return stack.gil == wanted; });
  }
};

TEST_P(BpfGilListTest, MarksAThreadThatWaitsInTheListOfTheLock) {
  wait_in("newer", 16, sample::Gil::kWaitedFor);
}

TEST_P(BpfGilListTest, MarksAnOlderWaiterInTheList) {
  wait_in("older", 16 + 48 + 40, sample::Gil::kWaitedFor);
}

TEST_P(BpfGilListTest, DoesNotMarkAThreadThatIsInNoList) {
  wait_in("other", 16, sample::Gil::kNone);
  EXPECT_EQ(count(sample::Gil::kWaitedFor), 0U);
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfGilListTest,
                         testing::ValuesIn(interpreters({.free_threaded = false,
                                                         .only_read = true,
                                                         .each_version = Prefer::kChrooted})),
                         InterpreterName{});
INSTANTIATE_TEST_SUITE_P(Pythons, BpfGilTest,
                         testing::ValuesIn(interpreters({.free_threaded = false,
                                                         .only_read = true})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
