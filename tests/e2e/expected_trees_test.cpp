#include "e2e/expected_trees.hpp"

#include "e2e/perf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace pyinject::test {
namespace {

// With frame pointers and the trampoline on from the start, perf alone is right: the comparison
// must agree.
TEST(ToldTrees, AgreeWithATrampolineThatWasAlwaysOn) {
  const auto python = plain_interpreter(15);
  const auto perf = find_perf("perf");
  if (!python || !perf) {
    GTEST_SKIP() << "no perf or no CPython 3.15 (scripts/pythons)";
  }
  const TempDir directory;
  const std::string data = directory / "data";
  PythonOptions options;
  options.interpreter_args = {"-X", "perf"};
  CallTreeServer target{*python, options};
  std::vector<std::string> arguments{
      *perf,        "record",    "-g", "-F", "999",
      "-e",         "cpu-clock", "-o", data, "-p",
      target.pid(), "--",        "sh", "-c", "echo recording; read end"};
  ChildProcess recording{arguments};
  ASSERT_EQ(recording.read_line(base::Deadline::after(kPatience)), "recording");
  target.work(10, std::chrono::seconds{1});
  const auto child = target.fork(600);
  recording.close_stdin();
  ASSERT_TRUE(recording.wait(base::Deadline::after(kPatience)));
  // numpy has no frame pointers: functions that it calls lose their callers.
  const auto found = compare(*perf, data, target.trees());
  EXPECT_GE(found.all.samples, 500U);
  EXPECT_GE(found.all.percent(), 90) << describe(found);
  EXPECT_EQ(found.others, 0U);
  EXPECT_EQ(found.threads.size(), 6U);

  // Compare each thread with the tree of another; the child has that of the main thread.
  auto others = target.trees();
  others.erase(child);
  CallTree last = others.rbegin()->second;
  for (auto& [thread, tree] : others) {
    std::swap(tree, last);
  }
  EXPECT_LT(compare(*perf, data, others).all.percent(), 30);
  others.erase(others.begin());
  EXPECT_GE(compare(*perf, data, others).others, 20U);
}

}  // namespace
}  // namespace pyinject::test
