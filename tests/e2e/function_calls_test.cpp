// record --functions and functions: every call is counted, with its caller and times.
#include "e2e/counted_calls.hpp"
#include "e2e/served_tree.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_P(FunctionCallsCounted, AreAsManyAsWereMade) {
  // Two records of up to 150 bytes per call: perf's buffer has room for all of them, even if perf
  // does not read any. With all rows, more calls.
  const int calls_made = std::getenv("PYINJECT_TEST_ALL") != nullptr ? 100'000 : 20'000;
  Counted target{GetParam()};
  ASSERT_TRUE(find_perf("perf"));
  for (const auto* const name : {"perf", "perf6.12", "perf7"}) {
    const auto perf = find_perf(name);
    if (!perf) {
      continue;
    }
    auto words = arguments(target.pid());
    words.insert(words.end(), {"--perf", *perf, "-m", "32M"});
    RunningRecord record{words, with_tracefs({tool()})};
    const auto events = events_of(record.child().pid());
    EXPECT_EQ(events.size(), 2U);
    target.call("leaves", calls_made);
    target.call("down", 50);
    target.call("fails", 70);
    target.call("methods", 80);
    EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    EXPECT_TRUE(events_of(record.child().pid()).empty()) << name;
    EXPECT_THAT(record.child().err(), HasSubstr("costs the target 1 to 3 us"));
    EXPECT_THAT(record.child().err(), HasSubstr("none lost"));

    const auto calls = calls_in(data());
    EXPECT_EQ(calls.at("lost"), 0);
    expect_calls(calls, "leaf", calls_made);
    expect_calls(calls, "leaves", 1);
    expect_calls(calls, "down", 51);
    expect_calls(calls, "fails", 1);
    expect_calls(calls, "fail", 70);
    const auto methods = named(calls, "same_name");
    ASSERT_EQ(methods.size(), 2U) << "of two classes";
    EXPECT_EQ(methods[0].at("calls"), 80);
    EXPECT_EQ(methods[1].at("calls"), 80);

    const auto leaf = named(calls, "leaf")[0];
    const auto leaves = named(calls, "leaves")[0];
    EXPECT_EQ(leaf.at("own_nanoseconds"), leaf.at("inclusive_nanoseconds"));
    EXPECT_EQ(
        leaves.at("inclusive_nanoseconds").get<long>(),
        leaves.at("own_nanoseconds").get<long>() + leaf.at("inclusive_nanoseconds").get<long>());
    const auto down = named(calls, "down")[0];
    EXPECT_EQ(down.at("own_nanoseconds"), down.at("longest_nanoseconds")) << "the outermost call";
    EXPECT_EQ(down.at("inclusive_nanoseconds"), down.at("longest_nanoseconds"));
  }
  target.expect_well();
}

TEST_P(FunctionCallsCounted, IncludeThreadsChildrenAndGenerators) {
  Counted target{GetParam()};
  RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
  target.call("threads", 1000);
  target.call("fork", 500);
  target.call("consume", 20);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  const auto calls = calls_in(data());
  expect_calls(calls, "leaf", 4500);
  expect_calls(calls, "leaves", 5);
  expect_calls(calls, "fork", 1);
  expect_calls(calls, "consume", 1);
  const auto generators = named(calls, "produce");
  ASSERT_EQ(generators.size(), 1U);
  EXPECT_EQ(generators[0].at("calls"), 22) << "created, started, and resumed 20 times";
  EXPECT_EQ(generators[0].at("returned"), 21) << "20 yields and the end";
  target.expect_well();
}

TEST_P(FunctionCallsCounted, SeparateFunctionsOfOneLineAndClosedGenerators) {
  Counted target{GetParam()};
  RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
  target.call("one_lines", 30);
  target.call("closes", 20);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  const auto calls = calls_in(data());
  const auto methods = named(calls, "one_line");
  ASSERT_EQ(methods.size(), 2U) << "of two classes";
  EXPECT_EQ(methods[0].at("calls"), 30);
  EXPECT_EQ(methods[1].at("calls"), 30);
  const auto generators = named(calls, "guarded");
  ASSERT_EQ(generators.size(), 1U);
  EXPECT_EQ(generators[0].at("calls"), 60) << "created, started and resumed";
  EXPECT_EQ(generators[0].at("returned"), 40) << "except by close()";
  // Compare the sums: a single call may have been preempted.
  EXPECT_LT(generators[0].at("inclusive_nanoseconds"),
            named(calls, "leaves")[0].at("inclusive_nanoseconds"))
      << "excludes the caller's time in between";
  target.expect_well();
}

// Without -o, perf writes to a stdout that is a pipe.
TEST_P(FunctionCallsCounted, GoToAFileWithoutBeingTold) {
  Counted target{GetParam()};
  const TempDir directory;
  RunningRecord record{
      {"--functions", "-p", target.pid()},
      with_tracefs({tool()}),
      {.env = {}, .unset = {}, .uid = {}, .directory = directory.path(), .root = {}}};
  target.call("leaves", 100);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  EXPECT_EQ(record.child().out(), "") << "of the command only";
  EXPECT_THAT(record.child().err(), HasSubstr("none lost, perf.data"));
  expect_calls(calls_in(directory / "perf.data"), "leaf", 100);
}

TEST_P(FunctionCallsCounted, AreToldOfInJsonWithWhatPerfSays) {
  Counted target{GetParam()};
  auto words = arguments(target.pid());
  words.insert(words.end(), {"-v", "--log-format", "json"});
  RunningRecord record{words, with_tracefs({tool()})};
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  std::set<std::string> events;
  bool perf_said = false;
  std::istringstream lines{record.child().err()};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) {
      continue;  // printed by mount
    }
    const auto object = json::parse(line);
    perf_said =
        perf_said || object.at("message").get<std::string>().find("perf: [ perf record: ") == 0;
    if (object.contains("event") && object.at("pid") == target.id().value()) {
      events.insert(object.at("event"));
    }
  }
  EXPECT_EQ(events, std::set<std::string>{"detected"});
  EXPECT_TRUE(perf_said) << record.child().err();
}

// A perf that makes the target PID start a thread before it starts itself, the first TIMES times.
std::string perf_with_threads(const TempDir& directory, const std::string& perf,
                              const std::string& pid, int times) {
  const auto path =
      directory.file("perf",
                     "#!/bin/sh\n"
                     "threads() { ls /proc/" +
                         pid +
                         "/task | wc -l; }\n"
                         "if [ \"$1\" = record ] && [ $(cat " +
                         directory / "starts" + " | wc -l) -lt " + std::to_string(times) +
                         " ]; then\n"
                         "  echo >> " +
                         directory / "starts" +
                         "\n"
                         "  before=$(threads)\n"
                         "  kill -USR1 " +
                         pid +
                         "\n"
                         "  until [ $(threads) -gt $before ]; do :; done\n"
                         "fi\n"
                         "exec " +
                         perf + " \"$@\"\n");
  (void)directory.file("starts", "");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST_P(FunctionCallsCounted, AreRecordedAnewWhenAThreadWasBornMeanwhile) {
  Counted target{GetParam()};
  for (const int times : {1, 100}) {
    const TempDir directory;
    auto words = arguments(target.pid());
    words.insert(
        words.end(),
        {"-v", "--perf", perf_with_threads(directory, *find_perf("perf"), target.pid(), times)});
    RunningRecord record{words, with_tracefs({tool()})};
    target.call("leaves", 100);
    EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    const auto again = count_of(record.child().err(), "perf is started again");
    const auto warned = count_of(record.child().err(), "new threads start all the time");
    EXPECT_EQ(again, times == 1 ? 1 : 4) << record.child().err();
    EXPECT_EQ(warned, times == 1 ? 0 : 1);
    expect_calls(calls_in(data()), "leaf", 100);
    EXPECT_FALSE(std::filesystem::exists(data() + ".old")) << "of a start that came to nothing";
    std::filesystem::remove(data());
  }
}

TEST_P(FunctionCallsCounted, CountEachCallOfTwoTargetsOnce) {
  Counted one{GetParam()};
  Counted other{GetParam()};
  RunningRecord record{arguments(one.pid() + "," + other.pid()), with_tracefs({tool()})};
  one.call("leaves", 300);
  other.call("leaves", 400);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  expect_calls(calls_in(data()), "leaf", 700);
}

TEST_P(FunctionCallsCounted, AreShownInTheirOrder) {
  Counted target{GetParam()};
  RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
  target.call("leaves", 2);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  const auto shown = run_tool({"functions", "-i", data(), "--timeline"});
  EXPECT_EQ(shown.status, ExitStatus{});
  std::string steps;
  std::istringstream lines{shown.out};
  for (std::string line; std::getline(lines, line);) {
    if (line.find("<string>") != std::string::npos) {
      const auto mark = line.find_first_of("<>");
      steps += line.substr(mark, line.find("  ", mark) - mark) + ";";
    }
  }
  EXPECT_EQ(steps, "> leaves;> leaf;< leaf;> leaf;< leaf;< leaves;");
  EXPECT_THAT(shown.out, HasSubstr("    > leaf  <string>:"));
  const auto table = run_tool({"functions", "-i", data()});
  EXPECT_THAT(table.out, testing::StartsWith("       CALLS"));
  EXPECT_THAT(table.out, HasSubstr("  leaf  <string>:"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, FunctionCallsCounted,
                         testing::ValuesIn(interpreters({.probes = true})), InterpreterName{});

}  // namespace
}  // namespace pyinject::test
