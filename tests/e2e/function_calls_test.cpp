// record --functions and functions: as many calls as were made, and nothing left in tracefs.
#include "e2e/served_tree.hpp"
#include "e2e/tracefs_use.hpp"
#include "pyinject/base/file.hpp"
#include "support/find_perf.hpp"
#include "support/guards.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using nlohmann::json;
using testing::HasSubstr;

// In a mount namespace of its own, where tracefs is mounted or surely not. No process is added: the
// number of what is run is that of PROGRAM.
std::vector<std::string> beside(const std::string& mounts,
                                const std::vector<std::string>& program) {
  std::vector<std::string> words{"unshare", "-m", "sh", "-c", mounts + "; exec \"$@\"", "sh"};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}
std::vector<std::string> with_tracefs(const std::vector<std::string>& program) {
  return beside("mount -t tracefs nodev /sys/kernel/tracing", program);
}

// The lines of uprobe_events that are of the session of this process.
std::vector<std::string> events_of(base::Pid tool) {
  const auto listed = run(with_tracefs({"cat", "/sys/kernel/tracing/uprobe_events"}));
  EXPECT_EQ(listed.status, ExitStatus{}) << listed.err;
  std::vector<std::string> found;
  std::istringstream lines{listed.out};
  const auto group = ":perf_pyinject_" + std::to_string(tool.value()) + "_";
  for (std::string line; std::getline(lines, line);) {
    if (line.find(group) != std::string::npos) {
      found.push_back(line);
    }
  }
  return found;
}

// tests/targets/counted_calls.py.
class Counted {
 public:
  explicit Counted(const Interpreter& python)
      : process_{python, target_source("counted_calls.py")} {}

  [[nodiscard]] std::string pid() const { return std::to_string(process_.pid().value()); }
  [[nodiscard]] base::Pid id() const { return process_.pid(); }
  void call(const std::string& what, int number) {
    process_.send_line(what + " " + std::to_string(number));
    EXPECT_EQ(process_.read_line(kPatience), "done");
  }
  void expect_well() {
    call("leaves", 10);
    process_.child().close_stdin();
    EXPECT_EQ(process_.child().wait(Deadline::after(kPatience)), ExitStatus{});
  }

 private:
  PythonProcess process_;
};

json calls_in(const std::string& data) {
  const auto result = run_tool({"functions", "-i", data, "--json"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  return json::parse(result.out);
}

// Those with that name, of programs that are run by -c.
std::vector<json> named(const json& calls, const std::string& name) {
  std::vector<json> found;
  for (const auto& function : calls.at("functions")) {
    if (function.at("function") == name && function.at("file") == "<string>") {
      found.push_back(function);
    }
  }
  return found;
}

void expect_calls(const json& calls, const std::string& name, int count) {
  const auto found = named(calls, name);
  ASSERT_EQ(found.size(), 1U) << name;
  EXPECT_EQ(found[0].at("calls"), count) << name;
  EXPECT_EQ(found[0].at("returned"), count) << name;
}

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

bool has_probes(const Interpreter& python) { return python.minor >= 15 && !python.free_threaded; }

class FunctionCalls : public testing::TestWithParam<Interpreter> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "needs root: mount namespaces, tracefs";
    }
  }
  [[nodiscard]] std::string data() const { return folder_ / "perf.data"; }
  [[nodiscard]] std::vector<std::string> arguments(const std::string& pids) const {
    return {"--functions", "-p", pids, "-o", data()};
  }
  void be_alone() { tracefs_.be_alone(); }

 private:
  TracefsUse tracefs_;
  TempDir folder_;
};

class FunctionCallsCounted : public FunctionCalls {
 protected:
  void SetUp() override {
    FunctionCalls::SetUp();
    if (!IsSkipped() &&
        run(with_tracefs({"test", "-w", "/sys/kernel/tracing/uprobe_events"})).status !=
            ExitStatus{}) {
      GTEST_SKIP() << "needs tracefs and uprobe events: not in this container or kernel";
    }
  }
};

TEST_P(FunctionCallsCounted, AreAsManyAsWereMade) {
  // Two records of 150 bytes or less for each: perf's buffer has room for all, should it not come
  // to read them.
  constexpr int kCalls = 100'000;
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
    target.call("leaves", kCalls);
    target.call("down", 50);
    target.call("fails", 70);
    target.call("methods", 80);
    EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    EXPECT_TRUE(events_of(record.child().pid()).empty()) << name;
    EXPECT_THAT(record.child().err(), HasSubstr("costs the target 1 to 3 us"));
    EXPECT_THAT(record.child().err(), HasSubstr("none lost"));

    const auto calls = calls_in(data());
    EXPECT_EQ(calls.at("lost"), 0);
    expect_calls(calls, "leaf", kCalls);
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
    EXPECT_EQ(down.at("own_nanoseconds"), down.at("longest_nanoseconds")) << "the outermost";
    EXPECT_EQ(down.at("inclusive_nanoseconds"), down.at("longest_nanoseconds"));
  }
  target.expect_well();
}

TEST_P(FunctionCallsCounted, OfThreadsChildrenAndGeneratorsAreThereToo) {
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
  EXPECT_EQ(generators[0].at("calls"), 22) << "made, begun, and gone on 20 times";
  EXPECT_EQ(generators[0].at("returned"), 21) << "20 yields and the end";
  target.expect_well();
}

TEST_P(FunctionCallsCounted, OfOneLineAndOfClosedGeneratorsAreApart) {
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
  EXPECT_EQ(generators[0].at("calls"), 60) << "made, begun, and gone on";
  EXPECT_EQ(generators[0].at("returned"), 40) << "not by close()";
  // Of all: one of them may have lost its processor while it ran.
  EXPECT_LT(generators[0].at("inclusive_nanoseconds"),
            named(calls, "leaves")[0].at("inclusive_nanoseconds"))
      << "without what the caller did meanwhile";
  target.expect_well();
}

// perf writes to a stdout that is a pipe unless it is told where.
TEST_P(FunctionCallsCounted, GoToAFileWithoutBeingTold) {
  Counted target{GetParam()};
  const TempDir folder;
  RunningRecord record{{"--functions", "-p", target.pid()},
                       with_tracefs({tool()}),
                       {.env = {}, .unset = {}, .uid = {}, .folder = folder.path(), .root = {}}};
  target.call("leaves", 100);
  EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  EXPECT_EQ(record.child().out(), "") << "of the command alone";
  EXPECT_THAT(record.child().err(), HasSubstr("none lost, perf.data"));
  expect_calls(calls_in(folder / "perf.data"), "leaf", 100);
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
      continue;  // of mount
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

// A perf that begins a thread in the target PID before it starts, the first TIMES times.
std::string perf_with_threads(const TempDir& folder, const std::string& perf,
                              const std::string& pid, int times) {
  const auto path = folder.file("perf",
                                "#!/bin/sh\n"
                                "threads() { ls /proc/" +
                                    pid +
                                    "/task | wc -l; }\n"
                                    "if [ \"$1\" = record ] && [ $(cat " +
                                    folder / "starts" + " | wc -l) -lt " + std::to_string(times) +
                                    " ]; then\n"
                                    "  echo >> " +
                                    folder / "starts" +
                                    "\n"
                                    "  before=$(threads)\n"
                                    "  kill -USR1 " +
                                    pid +
                                    "\n"
                                    "  until [ $(threads) -gt $before ]; do :; done\n"
                                    "fi\n"
                                    "exec " +
                                    perf + " \"$@\"\n");
  (void)folder.file("starts", "");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST_P(FunctionCallsCounted, AreRecordedAnewWhenAThreadWasBornMeanwhile) {
  Counted target{GetParam()};
  for (const int times : {1, 100}) {
    const TempDir folder;
    auto words = arguments(target.pid());
    words.insert(words.end(), {"-v", "--perf",
                               perf_with_threads(folder, *find_perf("perf"), target.pid(), times)});
    RunningRecord record{words, with_tracefs({tool()})};
    target.call("leaves", 100);
    EXPECT_EQ(record.finish(), ExitStatus{}) << record.child().err();
    const auto anew = count_of(record.child().err(), "it is started anew");
    const auto warned = count_of(record.child().err(), "threads are begun all the time");
    EXPECT_EQ(anew, times == 1 ? 1 : 4) << record.child().err();
    EXPECT_EQ(warned, times == 1 ? 0 : 1);
    expect_calls(calls_in(data()), "leaf", 100);
    EXPECT_FALSE(std::filesystem::exists(data() + ".old")) << "of a start that came to nothing";
    std::filesystem::remove(data());
  }
}

TEST_P(FunctionCallsCounted, OfTwoTargetsAreCountedOnce) {
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

TEST_P(FunctionCallsCounted, EndBySignalsInGoodOrder) {
  Counted target{GetParam()};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
    EXPECT_EQ(events_of(record.child().pid()).size(), 2U);
    target.call("leaves", 1000);
    record.child().signal(signal);
    EXPECT_EQ(record.wait(), (ExitStatus{.code = 128 + signal})) << record.child().err();
    EXPECT_TRUE(events_of(record.child().pid()).empty()) << signal;
    expect_calls(calls_in(data()), "leaf", 1000);
  }
  target.expect_well();
}

TEST_P(FunctionCallsCounted, OfAKilledToolLeaveNothingBehindTheNextOne) {
  be_alone();
  const Guards guards;
  Counted target{GetParam()};
  base::Pid killed;
  {
    RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
    killed = record.child().pid();
    EXPECT_EQ(events_of(killed).size(), 2U);
    target.call("leaves", 1000);
    record.child().signal(SIGKILL);
    EXPECT_EQ(record.wait(), (ExitStatus{.code = 0, .signal = SIGKILL}));
    record.child().close_stdin();
  }
  guards.wait_for_orphans({target.id()});  // perf completes its file
  expect_calls(calls_in(data()), "leaf", 1000);
  target.expect_well();
  // Also one that comes to nothing: its target is gone.
  EXPECT_EQ(events_of(killed).size(), 2U);
  auto next = with_tracefs({tool(), "record"});
  const auto more = arguments(target.pid());
  next.insert(next.end(), more.begin(), more.end());
  EXPECT_EQ(run(next).status, (ExitStatus{.code = 125}));
  EXPECT_TRUE(events_of(killed).empty());
}

TEST_P(FunctionCallsCounted, TargetMayEndFirst) {
  Counted target{GetParam()};
  RunningRecord record{arguments(target.pid()), with_tracefs({tool()})};
  target.call("leaves", 100);
  target.expect_well();
  EXPECT_EQ(record.wait(), ExitStatus{});
  EXPECT_THAT(record.child().err(), HasSubstr("the target exited before the recording was to end"));
  EXPECT_TRUE(events_of(record.child().pid()).empty());
  expect_calls(calls_in(data()), "leaf", 110);
}

TEST_P(FunctionCallsCounted, NeedTracefs) {
  Counted target{GetParam()};
  auto words =
      beside("umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null", {tool(), "record"});
  const auto more = arguments(target.pid());
  words.insert(words.end(), more.begin(), more.end());
  const auto result = run(words);
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(result.err, HasSubstr("mount -t tracefs nodev /sys/kernel/tracing"));
  EXPECT_FALSE(std::filesystem::exists(data()));
  target.expect_well();
}

class FunctionCallsRefused : public FunctionCalls {};

TEST_P(FunctionCallsRefused, WhereTheBuildHasNoProbes) {
  Counted target{GetParam()};
  const auto result = run_tool({"record", "--functions", "-p", target.pid(), "-o", data()});
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("(no_function_probes)"));
  EXPECT_THAT(result.err, HasSubstr("perf-pyinject record without --functions"));
  EXPECT_FALSE(std::filesystem::exists(data()));
  target.expect_well();
}

TEST(FunctionsVerb, RefusesOtherFiles) {
  const TempDir folder;
  const auto result = run_tool({"functions", "-i", folder.file("perf.data", "no recording")});
  EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("it is no perf.data"));
}

std::vector<Interpreter> those(bool with_probes) {
  std::vector<Interpreter> result;
  for (const auto& python : find_interpreters()) {
    if (has_probes(python) == with_probes) {
      result.push_back(python);
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Pythons, FunctionCallsCounted, testing::ValuesIn(those(true)),
                         InterpreterName{});
INSTANTIATE_TEST_SUITE_P(Pythons, FunctionCallsRefused, testing::ValuesIn(those(false)),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
