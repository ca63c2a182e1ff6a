// A module built without frame pointers calls back into Python: the program unwinds through it,
// while frame pointers skip its caller.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pyinject::test {
namespace {

// An evaluator calls the module's function directly, as CPython calls builtins.
constexpr auto kCallsBack = R"(
import ctypes
class Method(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('function', ctypes.c_void_p), ('flags', ctypes.c_int),
                ('doc', ctypes.c_char_p)]
module = ctypes.CDLL(')";
constexpr auto kAndSo = R"(')
address = ctypes.cast(getattr(module, NAME), ctypes.c_void_p).value
method = Method(NAME.encode(), address, 8, None)  # METH_O
new = ctypes.pythonapi.PyCFunction_NewEx
new.restype = ctypes.py_object
new.argtypes = [ctypes.c_void_p] * 3
builtin = new(ctypes.addressof(method), None, None)
data = list(range(500, 0, -1))
text = 'x' * 5000
def work():
    for i in range(30):
        sorted(data)
        text.replace('x', 'yz')
        len(str(i))
def called():
    work()
def call():
    print('ready', flush=True)
    while True:
        builtin(called)
def begin():
    list(map(lambda _: call(), [1]))
begin()
)";

struct HidingCase {
  std::string function;
  std::string call_graph;  // empty: the tool's choice
  double share = 0;
};

class BpfHiddenFrames : public testing::TestWithParam<HidingCase> {};

// The Python functions are always right; this checks that the module's function lies between them.
TEST_P(BpfHiddenFrames, AreWhereTheyBelong) {
  const auto& name = GetParam().function;
  const auto python = find_build({.minor = 15});
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no Python 3.15 (scripts/pythons)";
  }
  PythonProcess target{
      *python, "NAME = '" + name + "'" + kCallsBack + targets_dir() + "/calls_python.so" + kAndSo};
  const TempDir directory;
  const auto data = directory / "data";
  auto arguments = bpf_record(std::to_string(target.pid().value()), data);
  if (!GetParam().call_graph.empty()) {
    arguments.insert(arguments.end(), {"--call-graph", GetParam().call_graph});
  }
  RunningRecord running{arguments};
  wait_for_cpu_time(target.pid(), std::chrono::seconds{2});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::size_t samples = 0;
  std::size_t right = 0;
  std::size_t wrong = 0;
  for (const auto& sample : samples_without_kernel_names(data)) {
    const auto chain = sample.chain();
    if (std::ranges::find(chain, "called") == chain.end()) {
      continue;
    }
    ++samples;
    const auto at = [&](auto is) { return std::ranges::find_if(sample.frames, is); };
    const auto module = at([&](const auto& frame) { return frame.symbol == name; });
    const auto inner = at([](const auto& frame) { return frame.function() == "called"; });
    const auto outer = at([](const auto& frame) { return frame.function() == "call"; });
    if (module == sample.frames.end()) {
      continue;  // without C functions
    }
    const bool in_order = inner < module && module < outer;
    right += in_order ? 1 : 0;
    wrong += in_order ? 0 : 1;
  }
  EXPECT_GE(samples, 100U) << running.child().err();
  EXPECT_TRUE(share_is_at_least({.count = right, .all = samples}, GetParam().share))
      << wrong << " in wrong order";
  EXPECT_TRUE(share_is_at_most({.count = wrong, .all = samples}, 0.001));
  RecordProperty("right", std::to_string(right));
  RecordProperty("wrong", std::to_string(wrong));
  RecordProperty("samples", std::to_string(samples));
}

INSTANTIATE_TEST_SUITE_P(Cases, BpfHiddenFrames,
                         testing::Values(HidingCase{"call_through", "", 0.99},
                                         HidingCase{"call_and_count", "", 0.99},
                                         HidingCase{"call_through", "fp", 0.95},
                                         HidingCase{"call_and_count", "fp", 0.95}),
                         [](const auto& one) { return one.param.function + one.param.call_graph; });

}  // namespace
}  // namespace pyinject::test
