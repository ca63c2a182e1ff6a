// Stacks by the BPF engine where frame pointers lead past a function: a module without them calls
// back into Python.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pyinject::test {
namespace {

// The module's function is called by an evaluator directly, as CPython does it with builtins.
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

class BpfHiddenFrames : public testing::TestWithParam<const char*> {};

// All Python functions are right in any case: between them is the module's, where it belongs.
TEST_P(BpfHiddenFrames, AreWhereTheyBelong) {
  const std::string name = GetParam();
  const auto python = find_build({.minor = 15});
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no Python 3.15 (scripts/pythons)";
  }
  PythonProcess target{
      *python, "NAME = '" + name + "'" + kCallsBack + targets_dir() + "/calls_python.so" + kAndSo};
  const TempDir folder;
  const auto data = folder / "data";
  RunningRecord running{bpf_record(std::to_string(target.pid().value()), data)};
  wait_for_cpu_time(target.pid(), std::chrono::seconds{2});
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  std::size_t samples = 0;
  std::size_t right = 0;
  std::size_t wrong = 0;
  for (const auto& sample : scripted_samples(data)) {
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
      continue;  // C functions are not known
    }
    const bool in_order = inner < module && module < outer;
    right += in_order ? 1 : 0;
    wrong += in_order ? 0 : 1;
  }
  EXPECT_GE(samples, 100U) << running.child().err();
  EXPECT_GE(100 * right, 95 * samples) << "of " << samples << ", and " << wrong << " wrong";
  EXPECT_LE(1000 * wrong, samples);
  RecordProperty("right", std::to_string(right));
  RecordProperty("wrong", std::to_string(wrong));
  RecordProperty("samples", std::to_string(samples));
}

INSTANTIATE_TEST_SUITE_P(Cases, BpfHiddenFrames, testing::Values("call_through", "call_and_count"),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
}  // namespace pyinject::test
