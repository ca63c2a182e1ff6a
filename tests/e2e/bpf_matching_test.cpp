// The BPF engine has a stack for every sample: checked with its own count and with the samples.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/patience.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace pyinject::test {
namespace {

// Long-lived threads that work in turns. It answers a line with a number N after N milliseconds of
// CPU time.
constexpr auto kStable = R"(
import sys, threading, time
THREADS = 6
def burn(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total
def work(until):
    while time.process_time() < until:
        burn(5000)
begin = threading.Barrier(THREADS + 1)
end = threading.Barrier(THREADS + 1)
until = 0
def live():
    while True:
        begin.wait()
        work(until)
        end.wait()
for _ in range(THREADS):
    threading.Thread(target=live, daemon=True).start()
print('ready', flush=True)
for line in sys.stdin:
    until = time.process_time() + int(line) / 1000
    begin.wait()
    end.wait()
    print('worked', flush=True)
)";

// On a line, it starts thread after thread; each works briefly, again and again. It reports when
// there are fifty. On the next line it starts a hundred more, and reports when all have worked
// often. (No thread ends: perf itself gives up if threads end while it opens its events.)
constexpr auto kStorm = R"(
import itertools, select, sys, threading, time
turns = 0
def burn(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total
def live():
    global turns
    while True:
        end = time.thread_time() + 0.0006
        while time.thread_time() < end:
            burn(1000)
        turns += 1
        time.sleep(0.5)
print('ready', flush=True)
sys.stdin.readline()
last = None
for number in itertools.count(1):
    threading.Thread(target=live, daemon=True).start()
    time.sleep(0.01)
    if number == 50:
        print('some', flush=True)
    if last is None and select.select([sys.stdin], [], [], 0)[0]:
        sys.stdin.readline()
        last = max(number + 100, 200)
    if number == last:
        break
enough = turns + 1500
while turns < enough:
    time.sleep(0.02)
print(number, flush=True)
sys.stdin.readline()
)";

// Samples in user space, and how many of them have no Python function.
struct Seen {
  std::size_t user = 0;
  std::size_t without = 0;
};

// Counts each thread's samples from its first to its last one with a Python function: outside of
// these it is starting or ending. A thread that has no such sample was missed entirely: all its
// samples count.
Seen between_start_and_end(const std::vector<ScriptedSample>& samples, const std::string& pid) {
  std::map<std::string, std::vector<bool>> threads;
  for (const auto& sample : samples) {
    if (sample.pid == pid && sample.user) {
      threads[sample.tid].push_back(sample.innermost() != nullptr);
    }
  }
  Seen seen;
  for (const auto& [tid, found] : threads) {
    auto first = std::find(found.begin(), found.end(), true);
    auto last = std::find(found.rbegin(), found.rend(), true).base();
    if (first == found.end()) {
      first = found.size() > 1 ? found.begin() : found.end();
      last = found.end();
    }
    seen.user += static_cast<std::size_t>(last - first);
    seen.without += static_cast<std::size_t>(std::count(first, last, false));
  }
  return seen;
}

std::vector<std::string> arguments_of(const PythonProcess& target, const TempDir& directory,
                                      const std::string& frequency) {
  auto words = bpf_record(std::to_string(target.pid().value()), directory / "data", frequency);
  words.insert(words.end(), {"--stats", directory / "stats.json"});
  return words;
}

class BpfMatching : public testing::TestWithParam<std::tuple<Build, int>> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = find_build(std::get<Build>(GetParam()));
    if (!python_) {
      GTEST_SKIP() << "no " << name(std::get<Build>(GetParam())) << " (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }

 private:
  std::optional<Interpreter> python_;
};

TEST_P(BpfMatching, HasARecordForEverySample) {
  const int frequency = std::get<int>(GetParam());
  const auto limit = base::parse_number<int>(base::trim(
      base::read_file("/proc/sys/kernel/perf_event_max_sample_rate").value_or("100000")));
  if (limit && *limit < frequency) {
    GTEST_SKIP() << "the kernel allows " << *limit << " Hz only: perf_event_max_sample_rate";
  }
  const TempDir directory;
  PythonProcess target{python(), kStable};
  RunningRecord running{arguments_of(target, directory, std::to_string(frequency))};
  target.send_line("1000");
  EXPECT_EQ(target.read_line(kPatience), "worked");
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto& messages = running.child().err();
  const auto figures = bpf_figures(directory / "stats.json");
  EXPECT_GE(figures.at("matched"), frequency / 4) << messages;
  for (const auto* const none : {"unmatched", "lost", "lost_names", "truncated", "no_state"}) {
    EXPECT_EQ(figures.at(none), 0) << none << "\n" << messages;
  }
  const auto unreadable = said_unreadable(messages, figures.at("matched"));
  // The file confirms the counts.
  const auto pid = std::to_string(target.pid().value());
  const auto samples = samples_without_kernel_names(directory / "data");
  const auto seen = between_start_and_end(samples, pid);
  EXPECT_GE(seen.user, static_cast<std::size_t>(frequency) / 4);
  EXPECT_LE(seen.without, unreadable) << messages;
  EXPECT_EQ(figures.at("matched"), samples.size()) << messages;
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfMatching,
                         testing::Combine(testing::ValuesIn(builds_without_jit()),
                                          testing::Values(999, 10000)),
                         [](const auto& one) {
                           return fmt::format("{}_{}_Hz", name(std::get<0>(one.param)),
                                              std::get<1>(one.param));
                         });

TEST(BpfMatchingOfLaunched, DoesNotMissWhatIsNoPython) {
  const auto python = plain_interpreter(13);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no CPython 3.13 (scripts/pythons)";
  }
  const TempDir directory;
  const auto script = fmt::format(
      "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; {} -c 'import time\n"
      "while time.process_time() < 1.5: sum(i & 7 for i in range(10000))'; exit 0",
      fmt::join(python->command, " "));
  const auto result = run_tool({"record", "--engine", "bpf", "-F", "999", "-e", "cpu-clock", "-o",
                                directory / "data", "--stats", directory / "stats.json", "--",
                                "/bin/sh", "-c", script});
  ASSERT_EQ(result.status, ExitStatus{}) << result.err;
  const auto samples = samples_without_kernel_names(directory / "data");
  ASSERT_FALSE(samples.empty());
  const auto of_shell = static_cast<std::size_t>(
      std::ranges::count(samples, samples.front().pid, &ScriptedSample::pid));
  const auto figures = bpf_figures(directory / "stats.json");
  const auto matched = figures.at("matched").get<std::size_t>();
  EXPECT_GE(of_shell, 20U);
  EXPECT_GE(matched, 50U) << result.err;
  EXPECT_LE(matched + figures.at("unmatched").get<std::size_t>(), samples.size() - of_shell)
      << result.err;
}

// Until it may start, the process runs this tool's program.
TEST(BpfMatchingOfLaunched, CountsNoProcessThatIsNone) {
  const auto python = plain_interpreter(13);
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no CPython 3.13 (scripts/pythons)";
  }
  const TempDir directory;
  std::vector<std::string> words{
      "record", "--engine",         "bpf", "-e", "cpu-clock", "--stats", directory / "stats.json",
      "-o",     directory / "data", "--"};
  words.insert(words.end(), python->command.begin(), python->command.end());
  words.insert(words.end(),
               {"-c", "import time\nwhile time.process_time() < 1.5: sum(range(10000))"});
  const auto result = run_tool(words);
  ASSERT_EQ(result.status, ExitStatus{}) << result.err;
  const auto counters = counters_in(directory / "stats.json");
  EXPECT_EQ(counters.at("Activated"), 1) << result.err;
  EXPECT_EQ(counters.at("SkippedNotPython"), 0) << result.err;
}

class BpfNewThreads : public testing::TestWithParam<Build> {};

// Some threads start between perf's opening of its events and the attach, others after it.
TEST_P(BpfNewThreads, AreCovered) {
  const auto python = find_build(GetParam());
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  const TempDir directory;
  PythonProcess target{*python, kStorm};
  const auto pid = std::to_string(target.pid().value());
  target.send_line("");
  EXPECT_EQ(target.read_line(kPatience), "some");
  RunningRecord running{arguments_of(target, directory, "999")};
  target.send_line("");
  EXPECT_GE(std::stoi(target.read_line(kPatience)), 200);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto seen = between_start_and_end(samples_without_kernel_names(directory / "data"), pid);
  const auto figures = bpf_figures(directory / "stats.json");
  const auto unmatched = figures.at("unmatched").get<std::size_t>();
  const auto all = figures.at("matched").get<std::size_t>() + unmatched;
  SCOPED_TRACE(running.child().err());
  ASSERT_GE(seen.user, 300U);
  EXPECT_TRUE(share_is_at_most({.count = unmatched, .all = all}, 0.001));
  // A thread of which all samples are from its start or its end is none of CPython's yet, or any
  // more: the program has read it and says so. There are few.
  const auto starting = figures.at("no_state").get<std::size_t>();
  EXPECT_LE(seen.without, starting + most_by_chance(seen.user, 0.001));
  EXPECT_TRUE(share_is_at_most({.count = starting, .all = all}, 0.02));
  RecordProperty("without_record", figures.at("unmatched").dump());
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfNewThreads,
                         testing::Values(Build{.minor = 12}, Build{.minor = 15}), BuildName{});

}  // namespace
}  // namespace pyinject::test
