// `why`: verdicts on services whose causes are known, and its account of their time.
#include "e2e/bpf_recording.hpp"
#include "support/asleep.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/shared.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Service {
  const char* name;     // in services.py
  const char* cause;    // in the JSON
  const char* verdict;  // the first line, behind the pid: an ECMAScript regular expression
};

constexpr auto kServices = std::to_array<Service>({
    {"gil", "gil",
     "GIL-bound: .* in compute <string>:[0-9]+; for [0-9]+ % of that, .* holds? it in "
     "compute <string>:[0-9]+"},
    {"lock", "lock",
     "lock-bound: .* in handle_with_lock <string>:[0-9]+; for [0-9]+ % of that, .* "
     "(holds?|releases?) it in handle_with_lock <string>:[0-9]+"},
    {"deadlock", "deadlock",
     "deadlock: thread [0-9]+ \"Thread-1.*\" in transfer <string>:[0-9]+, thread [0-9]+ "
     "\"Thread-2.*\" in transfer <string>:[0-9]+ wait for each other"},
    {"disk", "disk", R"(disk-bound: .* in disk <string>:[0-9]+ \(/.*/tmp.*\))"},
    {"network", "network", R"(network-bound: .* in query <string>:[0-9]+ \(127.0.0.1:[0-9]+\))"},
    {"upstream", "nothing",
     R"(idle: .*; 20 of 21 asyncio tasks wait in call <string>:[0-9]+; connected to 127.0.0.1:[0-9]+ \(20\))"},
    {"c", "cpu_c", R"(CPU-bound in C: .* in c <string>:[0-9]+ \(.*\))"},
    {"regex", "cpu_c",
     "CPU-bound in C: .* in regex <string>:[0-9]+.*"},  // the function, if there are symbols
    {"python", "cpu_python", "CPU-bound in Python: .* in compute <string>:[0-9]+"},
    {"collector", "cpu_gc", "CPU-bound in the garbage collector: .* in collector <string>:[0-9]+"},
    {"faults", "faults", "memory-bound: .* in faults <string>:[0-9]+"},
    {"leak", "nothing",
     R"(idle: .*; its memory grew from [0-9]+ to [0-9]+ MB \(resident\), .* MB/s; [0-9]+ % of its new pages in keep <string>:[0-9]+)"},
    {"event_loop", "event_loop",
     "blocked event loop: callbacks keep .* in handle_request <string>:[0-9]+"},
    {"idle", "nothing", "idle: .*"},
    {"stopped", "stopped", "stopped by a signal .*"},
});

class RunningService {
 public:
  RunningService(const Interpreter& interpreter, const std::string& name)
      : python_{interpreter,
                target_source("services.py"),
                {.interpreter_args = {},
                 .args = {name, directory_.path().string(), "alone"},
                 .child = {}}} {}
  [[nodiscard]] base::Pid pid() const { return python_.pid(); }
  [[nodiscard]] RunResult why(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> argv{tool(), "why", "-p", std::to_string(pid().value()), "-d", "2"};
    argv.insert(argv.end(), options.begin(), options.end());
    return run(argv);
  }
  // Its member "written" is what `-o` has written. Throws if there is no report.
  [[nodiscard]] json report() const {
    const auto file = directory_.path() / "why.jsonl";
    auto report = json::parse(why({"--json", "-o", file}).out);
    std::ifstream written{file};
    for (std::string line; std::getline(written, line);) {
      report["written"].push_back(json::parse(line));
    }
    return report;
  }

 private:
  TempDir directory_;
  PythonProcess python_;
};

class WhyBase {
 protected:
  static std::string lacks(int minor) {
    if (auto lack = bpf_engine_lacks(); !lack.empty()) {
      return lack;
    }
    return plain_interpreter(minor) ? "" : "not installed (scripts/pythons)";
  }
};

class Why : public testing::TestWithParam<std::tuple<int, Service>>, public WhyBase {};
struct NameOfCase {
  template <typename Info>
  std::string operator()(const Info& info) const {
    const auto& [minor, service] = info.param;
    return "py3_" + std::to_string(minor) + "_" + service.name;
  }
};
std::vector<std::tuple<int, Service>> services_and_versions() {
  std::vector<std::tuple<int, Service>> result;
  for (const auto& service : kServices) {
    for (const int minor : {12, 13, 14, 15}) {
      result.emplace_back(minor, service);
    }
  }
  return result;
}
COVER(Why, 3);
INSTANTIATE_TEST_SUITE_P(Services, Why, testing::ValuesIn(services_and_versions()), NameOfCase{});

TEST_P(Why, NamesTheCause) {
  const auto& [minor, service] = GetParam();
  if (const auto lack = lacks(minor); !lack.empty()) {
    GTEST_SKIP() << lack;
  }
  const RunningService running{*plain_interpreter(minor), service.name};
  const auto report = json::parse(running.why({"--json"}).out);
  EXPECT_EQ(report.at("cause"), service.cause);
  EXPECT_TRUE(
      std::regex_match(report.at("verdict").get<std::string>(), std::regex{service.verdict}))
      << report.at("verdict");
}

class WhyOfOne : public testing::TestWithParam<int>, public WhyBase {
 protected:
  void SetUp() override {
    if (const auto lack = lacks(GetParam()); !lack.empty()) {
      GTEST_SKIP() << lack;
    }
  }
  static void TearDownTestSuite() { reports().forget(); }
  // Made once for all tests that look at it.
  [[nodiscard]] static const json& report_on(const std::string& name) {
    return reports().of(fmt::format("{} {}", GetParam(), name), [&] {
      return RunningService{*plain_interpreter(GetParam()), name}.report();
    });
  }

 private:
  static Shared<json>& reports() {
    static Shared<json> all;
    return all;
  }
};
struct NameOfMinor {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return "py3_" + std::to_string(info.param);
  }
};
INSTANTIATE_TEST_SUITE_P(Versions, WhyOfOne, testing::Values(12, 13, 14, 15), NameOfMinor{});

// Returns the group of REPORT whose name is NAME. Throws if there is none.
json group_in(const json& report, const std::string& name) {
  for (const auto& group : report.at("groups")) {
    if (group.at("name") == name) {
      return group;
    }
  }
  throw base::Error{"no group " + name + " in " + report.dump(1)};
}

double seconds_of(const json& group, const std::string& use) {
  for (const auto& each : group.at("uses")) {
    if (each.at("use") == use) {
      return each.at("seconds");
    }
  }
  return 0;
}

TEST_P(WhyOfOne, AccountsForEachThreadsWallTime) {
  const auto& report = report_on("gil");
  EXPECT_EQ(report.at("version"), 1);
  EXPECT_EQ(report.at("cause"), "gil");
  EXPECT_EQ(report.at("lost"), 0);
  for (const auto& group : report.at("groups")) {
    double sum = 0;
    for (const auto& use : group.at("uses")) {
      sum += use.at("seconds").get<double>();
    }
    const auto wall = group.at("wall_seconds").get<double>();
    EXPECT_NEAR(sum, wall, 1e-6);
    EXPECT_NEAR(wall / report.at("seconds").get<double>(),
                static_cast<double>(group.at("tids").size()), 0.01);
  }
}

TEST_P(WhyOfOne, WritesTheSamplesAndWaitsThatItReports) {
  const auto& report = report_on("gil");
  const auto group = group_in(report, "worker-*");
  const auto tids = group.at("tids").get<std::vector<int>>();
  double on_cpu = 0;
  double for_gil = 0;
  for (const auto& sample : report.at("written")) {
    if (std::ranges::find(tids, sample.at("tid").get<int>()) == tids.end()) {
      continue;
    }
    const auto length = sample.at("period").get<double>() / 1e9;
    on_cpu += sample.at("event") == "cpu-clock" ? length : 0;
    std::set<std::string> names;
    for (const auto& frame : sample.at("stack")) {
      names.insert(frame.at("function"));
    }
    const bool waits = sample.at("event") == "context-switches" &&
                       names.contains("[waiting for the GIL]") && !names.contains("[preempted]");
    for_gil += waits ? length : 0;
  }
  EXPECT_NEAR(for_gil, seconds_of(group, "gil"), 1e-6);
  EXPECT_GT(on_cpu, 0.9 * seconds_of(group, "python"));
  EXPECT_LT(on_cpu, group.at("wall_seconds").get<double>());
}

TEST_P(WhyOfOne, SaysWhoHasTheGil) {
  const auto& report = report_on("gil");
  const auto waited = seconds_of(group_in(report, "worker-*"), "gil");
  ASSERT_GT(waited, 0);
  double known = 0;
  double in_compute = 0;
  for (const auto& holder : report.at("gil")) {
    if (!holder.at("tid").is_null()) {
      const auto& function = holder.at("held").at("function");
      const auto& file = holder.at("held").at("file");
      const auto length = holder.at("seconds").get<double>();
      EXPECT_EQ(holder.at("waiters"), "worker-*");
      EXPECT_THAT(holder.at("thread"), StartsWith("worker-"));
      // The functions that call compute(), too, have the GIL now and then, and those of a worker
      // that only begins. Of one that released it, the stack may not have been read.
      EXPECT_TRUE(function == "compute" || function == "handle_in_python" ||
                  function == "handle_in_python_when_told" ||
                  (file.is_string() && file.get<std::string>().ends_with("/threading.py")) ||
                  (function.is_null() && holder.at("released")))
          << holder;
      known += length;
      in_compute += function == "compute" ? length : 0;
    }
  }
  EXPECT_GT(known, 0.8 * waited);
  EXPECT_GT(in_compute, 0.9 * known);
}

// A parent with three workers, of which the second works.
TEST_P(WhyOfOne, ExaminesTheBusiestWorkerOfAServer) {
  const TempDir directory;
  const auto name = directory.path().filename().string();  // a word that no other process has
  PythonProcess python{*plain_interpreter(GetParam()),
                       R"(
import os
parent = os.getpid()
end, held = os.pipe()
def serve():
    while os.getppid() == parent: pass
def wait():
    os.read(end, 1)
workers = []
for number in range(3):
    workers.append(os.fork())
    if workers[-1] == 0:
        os.close(held)
        serve() if number == 1 else wait()
        os._exit(0)
print('ready', flush=True)
print(workers[1], flush=True)
os.wait()
)",
                       {.interpreter_args = {}, .args = {name}, .child = {}}};
  const auto busy = std::stoi(python.read_line());
  const auto parent = std::to_string(python.pid().value());
  const auto why = [](std::vector<std::string> words) {
    words.insert(words.begin(), {tool(), "why", "--json", "-d", "1"});
    const auto result = run(words);
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return json::parse(result.out);
  };
  for (const auto& report : {why({name}), why({parent, "--children"})}) {
    EXPECT_EQ(report.at("pid"), busy);
    EXPECT_EQ(report.at("considered").size(), 4U);
    EXPECT_EQ(report.at("considered").at(0).at("pid"), busy);
    EXPECT_THAT(report.at("verdict"), HasSubstr(" serve "));
  }
  const auto alone = why({parent});
  EXPECT_EQ(alone.at("pid"), python.pid().value());
  EXPECT_EQ(alone.at("cause"), "child");
  EXPECT_THAT(alone.at("considered"), IsEmpty());
}

// One at a time, hundreds a second.
TEST_P(WhyOfOne, AccountsForThreadsThatStartAndEnd) {
  const RunningService running{*plain_interpreter(GetParam()), "threads"};
  const auto report = json::parse(running.why({"--json"}).out);
  double wall = 0;  // but for the main thread
  std::size_t threads = 0;
  for (const auto& group : report.at("groups")) {
    if (group.at("tids").front() == report.at("pid")) {
      continue;
    }
    wall += group.at("wall_seconds").get<double>();
    threads += group.at("tids").size();
    EXPECT_THAT(group.at("tids"), Not(Contains(~0U)));
  }
  const auto group = group_in(report, "short threads");
  EXPECT_LT(seconds_of(group, "unknown"), 0.2 * group.at("wall_seconds").get<double>());
  EXPECT_GT(seconds_of(group, "python"), 0);
  EXPECT_GT(threads, 10);
  EXPECT_LT(wall, report.at("seconds").get<double>());
}

TEST_P(WhyOfOne, SaysWhoHasALock) {
  const auto& report = report_on("lock");
  const auto waited = seconds_of(group_in(report, "worker-*"), "lock");
  double known = 0;
  for (const auto& holder : report.at("locks")) {
    if (!holder.at("tid").is_null()) {
      // Waits that no snapshot shows: only who has released it.
      EXPECT_TRUE(holder.at("released") || !holder.at("object").is_null()) << holder;
      EXPECT_TRUE(holder.at("object").is_null() ||
                  holder.at("object").get<std::string>().starts_with("Lock 0x"));
      EXPECT_EQ(holder.at("held").at("function"), "handle_with_lock");
      known += holder.at("seconds").get<double>();
    }
  }
  EXPECT_GT(known, 0.9 * waited);
}

// The kernel gives the samples of its switches the ids and the times of the later one. Only the
// stacks at these samples tell waits for the GIL.
TEST_P(WhyOfOne, IsRightBesideALaterRecorderOfSwitches) {
  const TempDir directory;
  const auto data = directory.path() / "data";
  const RunningService running{*plain_interpreter(GetParam()), "gil"};
  ChildProcess why{
      {tool(), "why", "--json", "-p", std::to_string(running.pid().value()), "-d", "3"}};
  const BpfTimeCount program{why.pid()};
  const auto deadline = base::Deadline::after(kPatience);
  while (program.time() == std::chrono::nanoseconds{} && !deadline.expired()) {
    ::poll(nullptr, 0, 10);  // leaves the processor to the tool that starts
  }
  ChildProcess perf{{"perf", "record", "-a", "-B", "-e", "context-switches", "-c", "1",
                     "--sample-identifier", "-o", data.string()}};
  EXPECT_EQ(why.wait(base::Deadline::after(kPatience)), ExitStatus{}) << why.err();
  perf.signal(SIGINT);
  (void)perf.wait(base::Deadline::after(kPatience));
  const auto report = json::parse(why.out());
  EXPECT_EQ(report.at("cause"), "gil");
  const auto group = group_in(report, "worker-*");
  EXPECT_LT(seconds_of(group, "unknown") + seconds_of(group, "futex"),
            0.01 * group.at("wall_seconds").get<double>())
      << group;
  const auto recorded = run({"perf", "script", "-F", "tid", "-i", data.string()});
  EXPECT_GT(std::ranges::count(recorded.out, '\n'), 1000) << "perf has recorded meanwhile";
}

// Of processes that do nothing: other tests may run meanwhile.
class WhyOfIdle : public testing::TestWithParam<int>, public WhyBase {
 protected:
  void SetUp() override {
    if (const auto lack = lacks(GetParam()); !lack.empty()) {
      GTEST_SKIP() << lack;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Versions, WhyOfIdle, testing::Values(12, 13, 14, 15), NameOfMinor{});

TEST_P(WhyOfIdle, SaysThatAProcessCannotRun) {
  PythonProcess python{*plain_interpreter(GetParam()), R"(
import os, threading
both, red, blue = threading.Barrier(2), threading.RLock(), threading.RLock()
def lock(one, other):
    with one:
        both.wait()
        os.write(1, b'ready\n')
        other.acquire()
threading.Thread(target=lock, args=(blue, red)).start()
lock(red, blue)
)"};
  EXPECT_EQ(python.read_line(), "ready");  // of the other thread
  const std::vector<std::string> why{tool(), "why", "-p", std::to_string(python.pid().value()),
                                     "-d",   "1"};
  const auto deadlock = run(why);
  EXPECT_THAT(deadlock.out, HasSubstr(": deadlock: thread ")) << deadlock.err;
  python.pause();
  const auto stopped = run(why);
  EXPECT_THAT(stopped.out, HasSubstr(": stopped by a signal")) << stopped.err;
}

// Eight of them get more than the 5 % of a CPU that count as work, unless 300 others want the CPUs.
TEST_P(WhyOfIdle, SaysThatItsChildrenWork) {
  const PythonProcess python{*plain_interpreter(GetParam()), R"(
import os, time
parent = os.getpid()
for child in range(8):
    if os.fork() == 0:
        while os.getppid() == parent: pass
        os._exit(0)
os.write(1, b'ready\n')
time.sleep(3600)
)"};
  const auto pid = std::to_string(python.pid().value());
  const auto shown = run({tool(), "why", "-p", pid, "-d", "1"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr(": idle: "), HasSubstr("; its child processes use "),
                               HasSubstr("next: perf-pyinject why -p " + pid + " --children")))
      << shown.err;
}

TEST_P(WhyOfIdle, LeavesTheProcessUntouched) {
  const PythonProcess python{*plain_interpreter(GetParam()),
                             target_source("dumped.py"),
                             {.interpreter_args = {}, .args = {"3", "0"}, .child = {}}};
  wait_until_asleep(python.pid());
  const Untouched before{python.pid()};
  const auto shown = run({tool(), "why", "-p", std::to_string(python.pid().value()), "-d", "1"});
  EXPECT_THAT(shown.out, HasSubstr(": lock-bound: ")) << shown.err;
  EXPECT_THAT(before.differences(), IsEmpty());
}

TEST(WhyTool, ReportsAProcessThatIsNoPython) {
  const auto refused = run({tool(), "why", "-p", std::to_string(::getpid())});
  EXPECT_EQ(refused.status.code, 125) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("(not_python)"));
}

TEST(WhyTool, KnowsTheFormatByTheName) {
  const auto refused = run({tool(), "why", "-p", std::to_string(::getpid()), "-o", "why.svg"});
  EXPECT_EQ(refused.status.code, 129);
  EXPECT_THAT(refused.err, HasSubstr("-o why.svg: expected a name that ends with one of: .html"));
}

TEST(WhyTool, SaysThatNoProcessHasTheName) {
  const TempDir directory;
  const auto name = directory.path().filename().string() + "x";
  for (const auto& verb :
       std::vector<std::vector<std::string>>{{"why"}, {"status"}, {"top", "--once", "-d", "1"}}) {
    std::vector<std::string> words{tool()};
    words.insert(words.end(), verb.begin(), verb.end());
    words.push_back(name);
    const auto refused = run(words);
    EXPECT_EQ(refused.status.code, 125);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err,
                HasSubstr("no Python process is called '" + name + "'; perf-pyinject "));
  }
}

}  // namespace
}  // namespace pyinject::test
