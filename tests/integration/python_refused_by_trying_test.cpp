// Problems that only the attempt reveals: it is undone, reported, and not repeated.
#include "integration/detection.hpp"

#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>

#include <sys/prctl.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using python::Reason;
using testing::HasSubstr;

class PythonRefusedByTryingTest : public DetectionTest {
 protected:
  static void expect_goes_on(PythonProcess& python) {
    python.send_line("go on");
    EXPECT_EQ(python.read_line(), "499500 False");
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonRefusedByTryingTest);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonRefusedByTryingTest,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});

constexpr auto kWorks =
    "def work(): return sum(i for i in range(1000))\n"
    "print('ready', flush=True)\n"
    "for line in sys.stdin: print(work(), sys.is_stack_trampoline_active(), flush=True)\n";

// As with systemd's MemoryDenyWriteExecute= or SELinux: CPython's call raises an exception.
TEST_P(PythonRefusedByTryingTest, ExecutableMemoryIsRefused) {
  constexpr int kSetMdwe = 65;  // PR_SET_MDWE, Linux 6.3
  if (::prctl(66, 0, 0, 0, 0) < 0 && errno == EINVAL) {
    GTEST_SKIP() << "no PR_SET_MDWE here";
  }
  PythonProcess python{GetParam(), "import ctypes, sys\nassert ctypes.CDLL(None).prctl(" +
                                       std::to_string(kSetMdwe) + ", 1, 0, 0, 0) == 0\n" + kWorks};
  Attach attach;
  const auto outcome = attach.try_activate(python.pid(), Attach::patient());
  ASSERT_TRUE(std::holds_alternative<python::Refusal>(outcome));
  EXPECT_EQ(std::get<python::Refusal>(outcome).reason, Reason::kActivationFailed);
  expect_goes_on(python);
  expect_refused_untouched(python.pid(), Reason::kActivationFailed,
                           {"an earlier activation", "restart the process"});
  expect_goes_on(python);
}

// Created between the detection and the activation, so that the earlier check misses it.
TEST_P(PythonRefusedByTryingTest, TheMapCannotBeWritten) {
  PythonProcess python{GetParam(), std::string{"import sys\n"} + kWorks};
  fs::remove(map_file(python.pid()));
  Attach attach;
  const auto target = attach.detect(python.pid());
  fs::create_directory(map_file(python.pid()));
  const auto outcome = attach.injector().activate(target, Attach::patient());
  fs::remove(map_file(python.pid()));
  ASSERT_TRUE(std::holds_alternative<python::Refusal>(outcome));
  const auto& refusal = std::get<python::Refusal>(outcome);
  EXPECT_THAT(refusal.reason, testing::AnyOf(Reason::kMapNotWritten, Reason::kActivationFailed))
      << python::describe(refusal);
  expect_goes_on(python);
  expect_refused_untouched(python.pid(), Reason::kActivationFailed, {"an earlier activation"});
}

}  // namespace
}  // namespace pyinject::test
