// A function that Cython has compiled has no Python frame: it is a C function, in its place between
// the Python functions.
#include "e2e/expected_trees.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::test {
namespace {

class CompiledByCython : public testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(CompiledByCython, IsACFunctionBetweenItsCallerAndWhatItCalls) {
  const auto [minor, engine] = GetParam();
  const auto python = find_interpreter({.minor = minor, .root = false, .module = "numpy"});
  if (!python) {
    GTEST_SKIP() << "no CPython 3." << minor << " with numpy (scripts/pythons)";
  }
  if (const auto lacks = bpf_engine_lacks(); engine == "bpf" && !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  PythonProcess shuffled{*python, target_source("shuffled.py")};
  const TempDir directory;
  const std::string data = directory / "perf.data";
  std::vector<std::string> argv{
      tool(), "record", "--engine", engine,      "-p", std::to_string(shuffled.pid().value()),
      "-F",   "999",    "-e",       "cpu-clock", "-o", data,
      "--"};
  const auto command = until_worked(shuffled.pid(), std::chrono::milliseconds{500});
  argv.insert(argv.end(), command.begin(), command.end());
  const auto record = run(argv);
  ASSERT_EQ(record.status, ExitStatus{}) << record.err;
  const auto found =
      frames_between(*find_perf("perf"), data, "deal", "Deck.__getitem__", "random/_generator.");
  EXPECT_GE(found.samples, 100U) << record.err;
  EXPECT_EQ(found.right, found.samples) << record.err;
}

INSTANTIATE_TEST_SUITE_P(Engines, CompiledByCython,
                         testing::Combine(testing::Values(14, 15),
                                          testing::Values("trampoline", "bpf")),
                         [](const auto& row) {
                           return fmt::format("py3_{}_{}", std::get<0>(row.param),
                                              std::get<1>(row.param));
                         });

}  // namespace
}  // namespace pyinject::test
