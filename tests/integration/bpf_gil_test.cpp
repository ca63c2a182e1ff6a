// Who has the GIL, as the program in the kernel sees it.
#include "integration/bpf_sampling.hpp"
#include "pyinject/tracee/remote_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pyinject::test {
namespace {

using bpf::Gil;

class BpfGilTest : public BpfSampling {
 protected:
  [[nodiscard]] std::size_t count(Gil gil) const {
    return static_cast<std::size_t>(std::ranges::count(stacks_, gil, &bpf::Stack::gil));
  }
  void expect_held() {
    std::erase_if(stacks_, [this](const auto& stack) { return !text(stack).starts_with("spin "); });
    EXPECT_GT(count(Gil::kHeld), stacks_.size() * 9 / 10);
    EXPECT_EQ(count(Gil::kUnknown), 0U);
  }
};

TEST_P(BpfGilTest, ItIsWhoseItIs) {
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

// In 3.12 a thread keeps the state that it had in there, which is of the newest interpreter.
TEST_P(BpfGilTest, ItIsHeldByWhoHasMadeAnInterpreter) {
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

TEST_P(BpfGilTest, WhoWaitsForItIsMarked) {
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
  collect(20, [](const auto& stack) { return stack.gil == Gil::kWaitedFor; });
}

// As whoever gives it up does: a system call about a futex of the GIL's.
TEST_P(BpfGilTest, WhoWakesOthersIsNotSaidToWait) {
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
  const tracee::ProcessMemory memory{python.pid()};
  const auto interpreter = memory.read_pointer(layout_.interpreters);
  ASSERT_TRUE(interpreter);
  const auto gil = memory.read_pointer(*interpreter + layout_.gil);
  ASSERT_TRUE(gil);
  python.send_line(std::to_string(gil->value()));
  collect(500);
  // ctypes gives it up for the call.
  collect(50, [](const auto& stack) { return stack.gil == Gil::kNone; });
  EXPECT_EQ(count(Gil::kWaitedFor), 0U);
}

INSTANTIATE_TEST_SUITE_P(Every, BpfGilTest, testing::ValuesIn(find_interpreters()),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
