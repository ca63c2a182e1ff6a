// Programs that switched the trampoline on and off themselves: a second activation crashes CPython
// 3.14 and later.
#include "integration/detection.hpp"
#include "support/covering.hpp"

#include <gmock/gmock.h>

#include <filesystem>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;

class PythonOnceActivatedTest : public DetectionTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonOnceActivatedTest);
COVER(PythonOnceActivatedTest, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonOnceActivatedTest,
                         testing::ValuesIn(interpreters({.both_ways = true})), InterpreterName{});

// For each line, creates functions, calls them and discards them.
constexpr auto kChurn =
    "import gc\n"
    "print('ready', flush=True)\n"
    "for line in iter(sys.stdin.readline, ''):\n"
    "    for i in range(1000):\n"
    "        names = {}\n"
    "        exec(f'def g{i}(x): return x\\nfor k in range(5): g{i}(k)', names)\n"
    "    names = None\n"
    "    gc.collect()\n"
    "    print('done', flush=True)\n";

// Interpreters that would crash are refused; the others survive another activation.
void expect_safe(PythonProcess& python, bool must_refuse) {
  const auto detection = python::make_detector()->detect(python.pid());
  if (std::holds_alternative<python::Refused>(detection)) {
    expect_refused_untouched(python.pid(), python::Reason::kActivatedBefore,
                             {"on and off before", "crashes", "restart it"});
  } else {
    ASSERT_FALSE(must_refuse);
    Attach attach;
    attach.activate(python.pid());
  }
  for (int round = 0; round < 3; ++round) {
    python.send_line("churn");
    ASSERT_EQ(python.read_line(), "done");
  }
}

TEST_P(PythonOnceActivatedTest, RefusesOrSurvivesItsOwnCall) {
  PythonProcess python{GetParam(), std::string{"import sys\n"
                                               "sys.activate_stack_trampoline('perf')\n"
                                               "def f(): pass\n"
                                               "f()\n"
                                               "sys.deactivate_stack_trampoline()\n"} +
                                       kChurn};
  expect_safe(python, since(14));
  fs::remove(map_file(python.pid()));
}

TEST_P(PythonOnceActivatedTest, RefusesOrSurvivesAnOption) {
  PythonOptions options;
  options.interpreter_args = {"-X", "perf"};
  PythonProcess python{GetParam(),
                       std::string{"import sys\n"
                                   "def f(): pass\n"
                                   "f()\n"
                                   "sys.deactivate_stack_trampoline()\n"} +
                           kChurn,
                       options};
  expect_safe(python, since(14));
  fs::remove(map_file(python.pid()));
}

// A code watcher of another module does not mean that it was activated.
TEST_P(PythonOnceActivatedTest, AnotherModulesWatcherDoesNotPreventActivation) {
  PythonProcess python{GetParam(),
                       std::string{"import ctypes, sys\n"
                                   "watcher = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int,"
                                   " ctypes.c_void_p)(lambda event, code: 0)\n"
                                   "assert ctypes.pythonapi.PyCode_AddWatcher(watcher) >= 0\n"} +
                           kChurn};
  Attach attach;
  EXPECT_TRUE(attach.activate(python.pid()).map.valid());
  python.send_line("churn");
  ASSERT_EQ(python.read_line(), "done");
  attach.deactivate(python.pid());
  fs::remove(map_file(python.pid()));
}

}  // namespace
}  // namespace pyinject::test
