// Targets of the BPF engine that exec while they are added.
#include "integration/detection.hpp"
#include "record/stack_sampler.hpp"
#include "support/fake_python.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>

namespace pyinject::test {
namespace {

class BpfActivation : public DetectionTest {};

// Without address randomization, everything is at its old address except the stack, which starts
// lower because the environment above it is larger.
TEST_P(BpfActivation, DropsFactsFromBeforeAnExec) {
  if (!GetParam().root.empty()) {
    GTEST_SKIP() << "its root has no /proc, by which it executes itself";
  }
  PythonProcess python{wrapped(GetParam(), {"setarch", "-R"}), R"(
import os, sys
print('ready', flush=True)
sys.stdin.readline()
os.environ['MORE'] = 1000 * 'x'
command = open('/proc/self/cmdline').read().split('\0')
program = 'print("executed", flush=True); input()'
os.execv('/proc/self/exe', command[:command.index('-c')] + ['-c', program])
)"};
  const auto detection = python::make_detector(python::Purpose::kObserve)->detect(python.pid());
  ASSERT_TRUE(std::holds_alternative<python::Target>(detection));
  const auto& target = std::get<python::Target>(detection);
  RecordingLogger logger;
  auto opened = record::StackSampler::open({}, true, logger);
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<record::StackSampler>>(opened));
  auto& sampler = *std::get<std::unique_ptr<record::StackSampler>>(opened);
  EXPECT_FALSE(sampler.add(target).has_value());
  python.send_line("go");
  ASSERT_EQ(python.read_line(), "executed");
  const auto again = sampler.add(target);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->reason, python::Reason::kExited);
  // Samples of the new program are not those of the Python that was examined.
  const auto interpreters = sampler.interpreters();
  EXPECT_EQ(interpreters.at(static_cast<std::uint32_t>(python.pid().value())).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfActivation, testing::ValuesIn(interpreters()),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
