// Targets with seccomp filters: if the activation would be killed or fail, it is refused before
// anything is touched; the usual filters of a service manager are accepted.
#include "support/asleep.hpp"
#include "support/attach.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <unistd.h>

namespace pyinject::test {
namespace {

// argv: pairs of system call number and action (SECCOMP_RET_*). MDWE: mprotect with PROT_EXEC
// fails.
constexpr const char* kFiltered = R"(
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def statement(code, k, jt=0, jf=0):
    return struct.pack('HBBI', code, jt, jf, k)
program = [statement(0x20, 0)]                       # load the number
for pair in sys.argv[1:]:
    number, action = pair.split(':')
    program += [statement(0x15, int(number), 0, 1), statement(0x06, int(action, 16))]
program.append(statement(0x06, 0x7fff0000))          # allow
code = b''.join(program)
buffer = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
description = Program(len(program), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(description)) == 0
def work(line):
    return line.strip() + ' ' + str(sys.is_stack_trampoline_active())
print('ready', flush=True)
for line in sys.stdin:
    print(work(line), flush=True)
)";

constexpr const char* kKill = "80000000";
constexpr const char* kErrnoPermission = "50001";
constexpr const char* kAllow = "7fff0000";

class Seccomp : public testing::TestWithParam<Interpreter> {
 protected:
  static PythonProcess filtered(const Interpreter& interpreter, std::vector<std::string> rules) {
    PythonOptions options;
    options.args = std::move(rules);
    return PythonProcess{interpreter, kFiltered, options};
  }
  static std::string rule(int number, const char* action) {
    return std::to_string(number) + ":" + action;
  }

  Attach attach_;
};

TEST_P(Seccomp, AFilterThatAllowsEverythingIsNoReason) {
  auto process = filtered(GetParam(), {rule(1000, kAllow)});
  attach_.activate(process.pid());
  process.send_line("one");
  EXPECT_EQ(process.read_line(), "one True");
}

TEST_P(Seccomp, RefusesFiltersThatWouldKill) {
  // CPython makes the trampolines' memory executable with mprotect.
  for (const char* action : {kKill, kErrnoPermission}) {
    auto process = filtered(GetParam(), {rule(10, action)});
    wait_until_asleep(process.pid());
    const auto before = take_snapshot(process.pid());
    const auto result = attach_.try_activate(process.pid(), Attach::patient());
    ASSERT_TRUE(std::holds_alternative<python::Refusal>(result));
    const auto& refusal = std::get<python::Refusal>(result);
    EXPECT_EQ(refusal.reason, python::Reason::kSeccomp);
    EXPECT_THAT(refusal.found, testing::HasSubstr("mprotect"));
    EXPECT_THAT(differences(before, take_snapshot(process.pid())), testing::IsEmpty());
    process.send_line("one");
    EXPECT_EQ(process.read_line(), "one False");
  }
}

// Without CAP_SYS_ADMIN filters cannot be read; signal frames are not tried then.
TEST_P(Seccomp, AFilterThatCannotBeReadIsTold) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "giving up capabilities needs some";
  }
  auto process = filtered(GetParam(), {rule(1000, kAllow)});
  ChildProcess activation{{"setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin", tool(),
                           "activate", "-p", std::to_string(process.pid().value())}};
  std::string answer;
  do {
    process.send_line("x");
    answer = process.read_line();
  } while (answer == "x False" && activation.running());
  EXPECT_EQ(activation.wait(base::Deadline::after(kPatience)), ExitStatus{}) << activation.err();
  EXPECT_THAT(activation.err(),
              testing::AllOf(testing::HasSubstr("its seccomp filters could not be read"),
                             testing::HasSubstr("CAP_SYS_ADMIN")));
}

TEST_P(Seccomp, UsesTheQueueIfSigreturnIsForbidden) {
  auto process = filtered(GetParam(), {rule(15, kKill)});
  // The main thread waits in read: signal frames would be chosen and would kill it.
  std::variant<python::Activation, python::Refusal> result;
  std::jthread activation{[&] { result = attach_.try_activate(process.pid(), Attach::patient()); }};
  std::string answer;
  do {
    process.send_line("x");
    answer = process.read_line();
  } while (answer == "x False");
  activation.join();
  EXPECT_EQ(answer, "x True");
  ASSERT_TRUE(std::holds_alternative<python::Activation>(result));
  EXPECT_EQ(std::get<python::Activation>(result).mechanism, python::Mechanism::kPendingQueue);
}

INSTANTIATE_TEST_SUITE_P(Pythons, Seccomp, testing::ValuesIn(interpreters()), InterpreterName{});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Seccomp);

}  // namespace
}  // namespace pyinject::test
