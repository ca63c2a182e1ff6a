// Programs that observe Python code: an audit hook or a trace function that raises must not make
// the program fail because of us.
#include "integration/withdrawn.hpp"
#include "support/asleep.hpp"
#include "support/attach.hpp"
#include "support/interpreters.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::test {
namespace {

struct Observer {
  const char* name;
  const char* code;  // raises for all code compiled, executed or called from now on
};

constexpr std::array kObservers = std::to_array<Observer>({
    {"AuditHook", R"(
def hook(event, args):
    if event in ('compile', 'exec') and armed:
        raise RuntimeError('not allowed')
armed = True
sys.addaudithook(hook)
)"},
    {"TraceFunction", R"(
def trace(frame, event, arg):
    if frame.f_code.co_filename == '<string>' and frame.f_code.co_name == '<module>':
        raise RuntimeError('not allowed')
sys.settrace(trace)
)"},
});

class Observed : public testing::TestWithParam<Interpreter> {
 protected:
  Attach attach_;
};

TEST_P(Observed, ABusyProgramIsLeftAlone) {
  for (const auto& observer : kObservers) {
    PythonProcess busy{GetParam(), std::string{"import sys, threading\n"} + observer.code + R"(
ended = []
def wait_for_end():
    ended.append(sys.stdin.readline())
threading.Thread(target=wait_for_end).start()
print('ready', flush=True)
total = 0
while not ended:
    for i in range(1000):
        total += i
print('fine', flush=True)
)"};
    auto options = Attach::patient();
    options.deadline = std::chrono::seconds{2};  // retried until then
    const auto result = attach_.try_activate(busy.pid(), options);
    ASSERT_TRUE(std::holds_alternative<python::Refusal>(result)) << observer.name;
    EXPECT_THAT(std::get<python::Refusal>(result).found, testing::HasSubstr("audit hooks"));
    busy.send_line("end");
    EXPECT_EQ(busy.read_line(), "fine") << observer.name;
    EXPECT_EQ(busy.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
  }
}

TEST_P(Observed, AWaitingProgramSeesNoError) {
  for (const auto& observer : kObservers) {
    PythonProcess waiting{GetParam(), std::string{"import sys\n"} + observer.code + R"(
print('ready', flush=True)
print('fine' if sys.stdin.readline() == 'end\n' else 'wrong', flush=True)
)"};
    (void)attach_.try_activate(waiting.pid(), Attach::patient());  // the hook may forbid it
    waiting.send_line("end");
    EXPECT_EQ(waiting.read_line(), "fine") << observer.name;
    EXPECT_EQ(waiting.child().wait(base::Deadline::after(kPatience)), ExitStatus{});
  }
}

// After a request has missed its deadline, the program starts to observe: neither that request nor
// the next one, which is refused, ever runs.
TEST_P(Observed, AWithdrawnRequestIsNotTakenUpAgain) {
  PythonProcess holder{GetParam(), R"(
import ctypes, sys
libc = ctypes.PyDLL(None)
buffer = ctypes.create_string_buffer(1)
seen = []
def hook(event, args):
    if event == 'compile' and 'activate' in repr(args[0]):
        seen.append(event)
print('ready', flush=True)
while libc.read(0, buffer, 1) == 1:
    if buffer.raw == b'h':
        sys.addaudithook(hook)
    for _ in range(100):
        sum(i for i in range(100))
    print(len(seen), sys.is_stack_trampoline_active(), flush=True)
)"};
  const auto go_on = [&holder](const std::string& order) {
    holder.child().write(order);
    EXPECT_EQ(holder.read_line(), "0 False");
  };
  wait_until_asleep(holder.pid());  // before the read it would simply be activated
  EXPECT_EQ(withdrawn(attach_, holder.pid()).reason, python::Reason::kDeadline);
  go_on("h");
  wait_until_asleep(holder.pid());
  auto options = Attach::patient();
  options.deadline = std::chrono::seconds{2};
  const auto result = attach_.try_activate(holder.pid(), options);
  ASSERT_TRUE(std::holds_alternative<python::Refusal>(result));
  const auto& refusal = std::get<python::Refusal>(result);
  EXPECT_EQ(refusal.reason, python::Reason::kDeadline);
  EXPECT_THAT(refusal.found, testing::HasSubstr("audit hooks"));
  go_on("x");
  go_on("x");
}

INSTANTIATE_TEST_SUITE_P(Pythons, Observed, testing::ValuesIn(interpreters()), InterpreterName{});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Observed);

}  // namespace
}  // namespace pyinject::test
