// Time per asyncio task (--tasks).
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace pyinject::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// The task in the sample's root frame; empty: none.
std::string task_of(const ScriptedSample& sample) {
  for (const auto& frame : sample.frames) {
    if (frame.symbol.starts_with("[task ")) {
      return frame.symbol;
    }
  }
  return "";
}

// How often each function that calls burn() was sampled, by task.
using SeenInTasks = std::map<std::string, std::map<std::string, std::size_t>>;

SeenInTasks callers_of_burn(const std::vector<ScriptedSample>& samples) {
  SeenInTasks seen;
  for (const auto& sample : samples) {
    const auto chain = sample.chain();
    if (chain.size() >= 2 && chain.back() == "burn") {
      ++seen[chain[chain.size() - 2]][task_of(sample)];
    }
  }
  return seen;
}

class BpfTasks : public testing::TestWithParam<Build> {};

TEST_P(BpfTasks, AreThoseOfTheFunctionsThatRun) {
  const auto python = find_build(GetParam());
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  PythonProcess target{*python, target_source("named_tasks.py")};
  const TempDir directory;
  auto arguments = bpf_record(std::to_string(target.pid().value()), directory / "data");
  arguments.emplace_back("--tasks");
  RunningRecord running{arguments};
  target.send_line("1500");
  EXPECT_EQ(target.read_line(kPatience), "worked");
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  auto seen = callers_of_burn(samples_without_kernel_names(directory / "data"));
  SCOPED_TRACE(running.child().err());
  const std::map<std::string, std::string> tasks{{"first", "\\[task crunch: .+\\]"},
                                                 {"second", "\\[task Task-[0-9]+\\]"},
                                                 {"watch", "\\[task Task-[0-9]+\\]"},
                                                 {"outside", ""}};
  for (const auto& [function, task] : tasks) {
    SCOPED_TRACE(function);
    ASSERT_EQ(seen[function].size(), 1U) << testing::PrintToString(seen);
    EXPECT_THAT(seen[function].begin()->first, MatchesRegex(task));
    EXPECT_GE(seen[function].begin()->second, 50U);
  }
  EXPECT_NE(seen["second"].begin()->first, seen["watch"].begin()->first);
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfTasks, testing::Values(Build{.minor = 14}, Build{.minor = 15}),
                         BuildName{});

class BpfNoTasks : public testing::TestWithParam<Build> {};

TEST_P(BpfNoTasks, WarnsOnceThatTheVersionShowsNone) {
  const auto python = find_build(GetParam());
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  PythonProcess target{*python, target_source("named_tasks.py")};
  PythonProcess another{*python, target_source("named_tasks.py")};
  const TempDir directory;
  const auto pids = fmt::format("{},{}", target.pid().value(), another.pid().value());
  const auto warning = fmt::format(
      "pid {}: --tasks has no effect on Python 3.{}.{}: the names of asyncio tasks can be read on "
      "3.14 and later",
      target.pid().value(), python->minor, python->micro);
  for (const std::string format : {"text", "json"}) {
    SCOPED_TRACE(format);
    const auto recorded = run({tool(), "record", "-p", pids, "--tasks", "--log-format", format,
                               "-o", directory / "data", "--", "true"});
    EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
    EXPECT_THAT(recorded.err,
                HasSubstr(format == "text" ? "warning: " + warning + "\n"
                                           : R"("level":"warning","message":")" + warning + "\""));
    EXPECT_EQ(recorded.err.find("--tasks"), recorded.err.rfind("--tasks")) << recorded.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfNoTasks,
                         testing::Values(Build{.minor = 12}, Build{.minor = 13}), BuildName{});

}  // namespace
}  // namespace pyinject::test
