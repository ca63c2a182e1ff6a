// record --what: the events of a recipe rank the lines of a program as the program itself does.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "perf/tracefs.hpp"
#include "pyinject/record/plan.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

namespace pyinject::test {
namespace {

using base::Deadline;
using testing::HasSubstr;
using testing::Not;

struct Calls {
  double count = 0;
  double nanoseconds = 0;
  double median = 0;                        // of the program's times
  std::vector<double> nanoseconds_of_each;  // of the samples
};
using Lines = std::map<long, Calls>;
using Events = std::map<std::string, Lines>;

constexpr auto kRead = "syscalls:sys_enter_read";
constexpr auto kReceive = "syscalls:sys_enter_recvfrom";
constexpr auto kFutex = "syscalls:sys_enter_futex";

constexpr std::size_t kMostListed = std::size_t{1} << 20U;

double nanoseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The program's answer.
Events measured(const std::string& answer) {
  Events events;
  for (const auto& each : nlohmann::json::parse(answer)) {
    events[each[0].get<std::string>()][each[1].get<long>()] = {.count = each[2].get<double>(),
                                                               .nanoseconds = each[3].get<double>(),
                                                               .median = each[4].get<double>(),
                                                               .nanoseconds_of_each = {}};
  }
  return events;
}

// The line of the innermost Python function of each sample of PID, if it makes calls (--lines).
Events recorded(const std::string& data, const std::string& pid) {
  Events events;
  for (const auto& sample : scripted_samples(data)) {
    const auto* const frame = sample.innermost();
    if (frame == nullptr || sample.pid != pid || !frame->function().starts_with("Rounds.")) {
      continue;
    }
    const auto line = frame->symbol.substr(frame->symbol.rfind(':') + 1);
    auto& calls = events[sample.event.substr(0, sample.event.size() - 1)]
                        [base::parse_number<long>(line).value_or(0)];
    calls.count += 1;
    calls.nanoseconds += static_cast<double>(sample.period);
    calls.nanoseconds_of_each.push_back(static_cast<double>(sample.period));
  }
  return events;
}

// In FOUND, of the lines in WANTED.
double total(const Lines& wanted, const Lines& found) {
  double all = 0;
  for (const auto& [line, calls] : wanted) {
    all += found.contains(line) ? found.at(line).nanoseconds : 0;
  }
  return all;
}

// The program's times include those of the calls: from before each until after it. It may lose its
// processor in between, which only the median does not show.
void expect_times(const Lines& wanted, const Lines& found, const std::string& event) {
  for (const auto& [line, calls] : wanted) {
    SCOPED_TRACE(fmt::format("{}, line {}", event, line));
    ASSERT_TRUE(found.contains(line));
    auto each = found.at(line).nanoseconds_of_each;
    ASSERT_EQ(static_cast<double>(each.size()), calls.count);
    const auto middle = each.begin() + (std::ssize(each) - 1) / 2;
    std::ranges::nth_element(each, middle);
    EXPECT_LE(*middle, calls.median);
    EXPECT_GE(*middle, 0.8 * calls.median);
  }
}

// The same for events of which a call may have several: the sums.
void expect_total_time(const Lines& wanted, const Lines& found, const std::string& event) {
  const auto ratio = total(wanted, found) / total(wanted, wanted);
  EXPECT_LE(ratio, 1) << event;
  EXPECT_GE(ratio, 0.6) << event;
}

// The shares of the lines in WANTED agree within POINTS percentage points.
void expect_shares(const Lines& wanted, const Lines& found, double Calls::*what, double points,
                   const std::string& event) {
  double all_wanted = 0;
  double all_found = 0;
  for (const auto& [line, calls] : wanted) {
    all_wanted += calls.*what;
    all_found += found.contains(line) ? found.at(line).*what : 0;
  }
  ASSERT_GT(all_wanted, 0) << event;
  ASSERT_GT(all_found, 0) << event;
  for (const auto& [line, calls] : wanted) {
    const auto has = found.contains(line) ? found.at(line).*what : 0;
    EXPECT_NEAR(100 * has / all_found, 100 * calls.*what / all_wanted, points)
        << event << ", line " << line;
  }
}

class Recipes : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    if (!has_tracepoints()) {
      GTEST_SKIP() << "no tracefs is mounted";
    }
    python_ = find_build(GetParam());
    if (!python_) {
      GTEST_SKIP() << "no " << name(GetParam()) << " (scripts/pythons)";
    }
    PythonOptions options;
    options.child = environment_of(GetParam());
    target_.emplace(*python_, target_source("recipes.py"), options);
  }
  // The program's answer for ROUNDS while it is recorded with OPTIONS.
  [[nodiscard]] Events record(int rounds, const std::vector<std::string>& options) {
    RunningRecord running{arguments(options)};
    const auto answer = make_calls(rounds);
    EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    messages_ = running.child().err();
    recorder_ = running.child().pid();
    return answer;
  }
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& options) const {
    std::vector<std::string> all{"-o", data(), "--lines"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  [[nodiscard]] Events make_calls(int rounds) {
    target_->send_line(std::to_string(rounds));
    return measured(target_->read_line(kPatience));
  }
  [[nodiscard]] std::string pid() const { return std::to_string(target_->pid().value()); }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] PythonProcess& target() { return *target_; }
  [[nodiscard]] const std::string& messages() const { return messages_; }
  [[nodiscard]] base::Pid recorder() const { return recorder_; }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
  std::optional<PythonProcess> target_;
  std::string messages_;
  base::Pid recorder_;
};

TEST_P(Recipes, RankLinesAsTheProgramDoes) {
  const auto wanted = record(25, {"-p", pid(), "--what", "io,net,locks,alloc,sched"});
  const auto found = recorded(data(), pid());
  EXPECT_THAT(messages(), Not(HasSubstr(" lost ")));
  EXPECT_THAT(messages(), HasSubstr("system calls timed"));
  for (const auto* const event :
       {kRead, kReceive, "syscalls:sys_enter_write", "syscalls:sys_enter_fsync",
        "syscalls:sys_enter_connect", "syscalls:sys_enter_mmap", "page-faults/period=1/",
        "sched:sched_switch"}) {
    ASSERT_TRUE(wanted.contains(event) && found.contains(event)) << event << messages();
    expect_shares(wanted.at(event), found.at(event), &Calls::count, 2, event);
  }
  expect_times(wanted.at(kRead), found.at(kRead), kRead);
  expect_times(wanted.at(kReceive), found.at(kReceive), kReceive);
  ASSERT_TRUE(wanted.contains(kFutex) && found.contains(kFutex)) << messages();
  expect_total_time(wanted.at(kFutex), found.at(kFutex), kFutex);
  expect_shares(wanted.at(kFutex), found.at(kFutex), &Calls::nanoseconds, 15, kFutex);
}

TEST_P(Recipes, CountEachAllocation) {
  const auto wanted = record(20, {"-p", pid(), "--what", "malloc"});
  EXPECT_THAT(messages(),
              HasSubstr("--what malloc: a breakpoint in malloc, calloc and realloc of "));
  EXPECT_THAT(messages(), Not(HasSubstr(" lost ")));
  Events found;  // without the group's name
  for (auto& [event, lines] : recorded(data(), pid())) {
    found[event.substr(event.rfind(':') + 1)] = lines;
  }
  for (const auto* const function : {"malloc", "calloc"}) {
    for (const auto& [line, calls] : wanted.at(function)) {
      EXPECT_EQ(found[function][line].count, calls.count) << function << ", line " << line;
    }
  }
  const auto tracefs = perf::find_tracefs();
  ASSERT_TRUE(tracefs);
  EXPECT_THAT(base::read_file(*tracefs + "/uprobe_events", kMostListed).value_or(""),
              Not(HasSubstr(fmt::format("perf_pyinject_{}_", recorder().value()))));
}

TEST_P(Recipes, ProbesAreNotPlacedAfterASignal) {
  // The signal is pending when the tool starts.
  const auto result = run({"python3", "-c",
                           "import os, signal, sys\n"
                           "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
                           "os.kill(os.getpid(), signal.SIGTERM)\n"
                           "os.execv(sys.argv[1], sys.argv[1:])\n",
                           tool(), "record", "-p", pid(), "--what", "malloc", "-o", data()});
  EXPECT_EQ(result.status, (ExitStatus{.code = 128 + SIGTERM})) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("a breakpoint in malloc")));
  EXPECT_FALSE(std::filesystem::exists(data()));
}

INSTANTIATE_TEST_SUITE_P(Pythons, Recipes, testing::ValuesIn(builds_without_jit()), BuildName{});

class RecipesOfOne : public Recipes {};

TEST_P(RecipesOfOne, WorkAgainAndForTheWholeSystem) {
  for (const auto& options : {std::vector<std::string>{"-p", pid(), "--what", "net"},
                              {"-p", pid(), "--what", "net"},
                              {"-p", pid(), "--what", "net", "--threads"},
                              {"-a", "--what", "net"}}) {
    const auto wanted = record(10, options);
    const auto found = recorded(data(), pid());
    ASSERT_TRUE(found.contains(kReceive)) << messages();
    expect_shares(wanted.at(kReceive), found.at(kReceive), &Calls::count, 2, kReceive);
    expect_times(wanted.at(kReceive), found.at(kReceive), kReceive);
  }
}

// The trampoline's stacks belong to the same samples.
TEST_P(RecipesOfOne, WorkWithTheTrampoline) {
  const auto wanted = record(10, {"-p", pid(), "--what", "net", "--engine", "trampoline"});
  EXPECT_THAT(messages(), HasSubstr("--what net: functions have no line numbers"));
  double waits = 0;
  std::size_t reads = 0;
  for (const auto& sample : scripted_samples(data())) {
    const auto* const frame = sample.innermost();
    if (sample.event.starts_with(kReceive) && frame != nullptr &&
        frame->function() == "Rounds.sockets") {
      ++reads;
      waits += static_cast<double>(sample.period);
    }
  }
  EXPECT_EQ(reads, 20U) << messages();
  const auto ratio = waits / total(wanted.at(kReceive), wanted.at(kReceive));
  EXPECT_LE(ratio, 1);
  EXPECT_GE(ratio, 0.6);
}

// After its answer, the target waits for the next line; the other process keeps the time.
TEST_P(RecipesOfOne, CountACallUntilTheRecordingEnds) {
  PythonProcess clock{python(), target_source("recipes.py")};
  const auto before = nanoseconds_now();
  RunningRecord running{arguments({"-p", pid(), "--what", "io"})};
  (void)make_calls(1);
  const auto begin = nanoseconds_now();
  clock.send_line("10");
  (void)clock.read_line(kPatience);
  const auto end = nanoseconds_now();
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  double longest = 0;
  for (const auto& sample : scripted_samples(data())) {
    longest = std::max(longest, static_cast<double>(sample.period));
  }
  EXPECT_GT(longest, 0.95 * (end - begin));
  EXPECT_LT(longest, nanoseconds_now() - before);
  EXPECT_THAT(running.child().err(), HasSubstr("until the recording ended"));
}

TEST_P(RecipesOfOne, ShowTheTimeOfCallsAsPerfDoes) {
  (void)record(10, {"-p", pid(), "--what", "net"});
  std::map<std::string, std::uint64_t> sums;
  for (const auto& sample : scripted_samples(data())) {
    sums[sample.event.substr(0, sample.event.rfind(':'))] += sample.period;
  }
  const auto shown = run({tool(), "report", "--json", data()});
  const auto report = nlohmann::json::parse(shown.out);
  std::map<std::string, std::uint64_t> reported;
  for (const auto& table : report.at("tables")) {
    EXPECT_EQ(table.at("unit"), "ns");
    reported[table.at("event")] = table.at("all");
  }
  EXPECT_EQ(reported, sums) << shown.err;
}

TEST_P(RecipesOfOne, TimeTheLastCallsOfATargetThatExits) {
  RunningRecord running{arguments({"-p", pid(), "--what", "io,net,locks"})};
  (void)make_calls(2);
  ASSERT_EQ(::kill(target().pid().value(), SIGKILL), 0);
  EXPECT_EQ(running.wait(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), Not(HasSubstr("not timed")));
  const auto found = recorded(data(), pid());
  EXPECT_EQ(found.at(kReceive).size(), 2U);
}

// Another perf records both tracepoints of the same call of another process.
TEST_P(RecipesOfOne, TakeNoSampleFromAnotherPerf) {
  PythonProcess other{python(), target_source("recipes.py")};
  const TempDir directory;
  const std::string foreign = directory / "foreign";
  ChildProcess perf{{"perf", "record", "-g", "-m", "8M", "-e", kReceive, "-e",
                     "syscalls:sys_exit_recvfrom", "-p", std::to_string(other.pid().value()), "-o",
                     foreign, "--", "sh", "-c", "echo ready; read word"}};
  ASSERT_EQ(perf.read_line(Deadline::after(kPatience)), "ready") << perf.err();
  RunningRecord running{arguments({"-p", pid(), "--what", "net"})};
  other.send_line("10");
  const auto wanted = make_calls(10);
  EXPECT_NE(other.read_line(kPatience), "");
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  perf.write("\n");
  EXPECT_EQ(perf.wait(Deadline::after(kPatience)), ExitStatus{}) << perf.err();
  EXPECT_EQ(scripted_samples(foreign).size(), 40U) << "20 calls and their ends";
  const auto found = recorded(data(), pid());
  expect_times(wanted.at(kReceive), found.at(kReceive), kReceive);
}

// The file as perf wrote it has both tracepoints; weave leaves periods as they are.
TEST_P(RecipesOfOne, KeepTheirTimesInASecondPass) {
  (void)record(3, {"-p", pid(), "--what", "net", "--keep-raw"});
  const auto once = recorded(data(), pid());
  ASSERT_EQ(run({tool(), "weave", data()}).status, ExitStatus{});
  const auto twice = recorded(data(), pid());
  ASSERT_EQ(once.at(kReceive).size(), 2U);
  for (const auto& [line, calls] : once.at(kReceive)) {
    EXPECT_EQ(twice.at(kReceive).at(line).nanoseconds, calls.nanoseconds) << line;
  }
  ASSERT_EQ(run({tool(), "weave", data() + ".raw"}).status, ExitStatus{});
  const auto events = run({"perf", "script", "-i", data() + ".raw", "-F", "event"}).out;
  std::map<std::string_view, std::size_t> raw;
  for (const auto line : base::split(events, '\n')) {
    ++raw[base::trim(line)];
  }
  EXPECT_EQ(raw["syscalls:sys_enter_recvfrom:"], 6U) << events;
  EXPECT_EQ(raw["syscalls:sys_exit_recvfrom:"], 6U) << events;
}

// A period has no effect on tracepoints: each call is timed, too.
TEST_P(RecipesOfOne, TimeCallsUnlessThereIsAFrequency) {
  const auto wanted = record(10, {"-p", pid(), "--what", "net", "-c", "10"});
  const auto found = recorded(data(), pid());
  expect_times(wanted.at(kReceive), found.at(kReceive), kReceive);
  (void)record(10, {"-p", pid(), "--what", "net", "-F", "99"});
  EXPECT_THAT(messages(), HasSubstr("--what net: with -F, only some of the calls are sampled"));
  EXPECT_THAT(messages(), Not(HasSubstr("sys_exit")));
}

// The line can be copied.
TEST_P(RecipesOfOne, PrintPerfsOptions) {
  (void)record(1, {"-p", pid(), "--what", "locks,faults", "-m", "1M"});
  EXPECT_THAT(messages(), HasSubstr("--what locks,faults: -e page-faults/period=1/,"
                                    "syscalls:sys_enter_futex,"
                                    "syscalls:sys_exit_futex/call-graph=no/\n"));
}

TEST_P(RecipesOfOne, AreRefusedIfTheMachineLacksTheirEvents) {
  if (run({"perf", "stat", "-e", "cache-misses", "true"}).err.find("not supported") ==
      std::string::npos) {
    GTEST_SKIP() << "this machine counts cache misses";
  }
  const auto refused = run({tool(), "record", "-p", pid(), "--what", "cache", "-o", data()});
  EXPECT_EQ(refused.status, ExitStatus{.code = record::kFailure});
  EXPECT_THAT(refused.err, HasSubstr("--what cache: this machine counts no cache misses"));
  EXPECT_THAT(refused.err, HasSubstr("-e cpu-clock shows where the time goes"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, RecipesOfOne, testing::Values(Build{.minor = 13}), BuildName{});

}  // namespace
}  // namespace pyinject::test
