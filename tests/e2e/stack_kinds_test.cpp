// Each sample of a recording is counted by the kind of its stack: the counts of `--stats`, what the
// verbs say of them, and what perf script shows are the same.
#include "base/text.hpp"
#include "e2e/both_engines.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

constexpr milliseconds kSpan{300};
constexpr std::size_t kFew = 60;  // of the samples in that time, at 499 Hz

std::size_t samples_with(const std::vector<ScriptedSample>& samples, std::string_view mark) {
  return static_cast<std::size_t>(std::ranges::count_if(
      samples, [mark](const auto& sample) { return has_mark(sample, mark); }));
}

class StackKinds : public testing::TestWithParam<Recorded> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); GetParam().engine == "bpf" && !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"--engine", GetParam().engine,    "-F", "499", "-e", "cpu-clock",
                                   "--stats",  directory_ / "stats", "-o", data()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Ends RUNNING, and reads what it has left.
  void finish(RunningRecord& running) {
    ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
    read(running.child().err());
  }
  void read(const std::string& messages) {
    messages_ = messages;
    samples_ = samples_without_kernel_names(data());
    kinds_ = nlohmann::json::parse(contents_of(directory_ / "stats")).at("stacks");
    std::size_t all = 0;
    for (const auto& [kind, count] : kinds_.items()) {
      all += count.get<std::size_t>();
    }
    EXPECT_EQ(all, samples_.size()) << kinds_ << messages;
  }
  [[nodiscard]] std::size_t of(std::string_view kind) const {
    return kinds_.at(std::string{kind}).get<std::size_t>();
  }
  [[nodiscard]] const std::vector<ScriptedSample>& samples() const { return samples_; }
  [[nodiscard]] const std::string& messages() const { return messages_; }
  [[nodiscard]] std::string kinds() const { return kinds_.dump() + messages_; }

  // The summary and each verb that reads the file say it.
  void expect_told(const std::string& what) const {
    EXPECT_THAT(messages(), HasSubstr(what));
    const std::vector<std::vector<std::string>> verbs{
        {"report", data()},
        {"report", "--view", "threads", data()},
        {"flamegraph", data(), "-o", directory_ / "page.html"},
        {"export", "-f", "folded", data(), "-o", directory_ / "folded"}};
    for (const auto& verb : verbs) {
      const auto told = run_tool(verb);
      EXPECT_EQ(told.status, ExitStatus{}) << told.err;
      EXPECT_THAT(told.err, HasSubstr(" lack Python functions: ")) << verb.front();
      EXPECT_THAT(told.err, HasSubstr(what)) << verb.front();
    }
  }

 private:
  TempDir directory_;
  std::vector<ScriptedSample> samples_;
  nlohmann::json kinds_;
  std::string messages_;
};

// Works, and then executes a shell, which works as well.
constexpr auto kExecutes = R"(
import os, sys, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(1000):
            pass
print("ready", flush=True)
sys.stdin.readline()
work(0.3)
os.execv("/bin/sh", ["sh", "-c", "echo executed; while :; do :; done"])
)";

TEST_P(StackKinds, AreCountedForAProgramThatIsExecutedLater) {
  PythonProcess target{GetParam().python, kExecutes};
  RunningRecord running{arguments({"-p", std::to_string(target.pid().value())})};
  target.send_line("work");
  EXPECT_EQ(target.read_line(), "executed");
  wait_for_cpu_time(target.pid(), kSpan);
  ASSERT_NO_FATAL_FAILURE(finish(running));
  const auto without = static_cast<std::size_t>(
      std::ranges::count_if(samples(), [](const auto& one) { return one.innermost() == nullptr; }));
  EXPECT_GE(of("complete"), kFew) << kinds();
  EXPECT_GE(of("later_program"), kFew) << kinds();
  EXPECT_EQ(of("other_program"), 0U) << kinds();
  // A stack that is cut, as in the middle of the exec, may have none of its Python functions.
  const auto without_any = of("later_program") + of("no_python") + of("unread");
  EXPECT_GE(without, without_any) << kinds();
  EXPECT_LE(without, without_any + of("cut")) << kinds();
  EXPECT_THAT(messages(),
              HasSubstr(fmt::format(" of {} samples ", base::grouped(samples().size()))));
  expect_told(fmt::format("{} of a program that was executed later (record it by itself)",
                          base::grouped(of("later_program"))));
}

constexpr auto kStarts = R"(
import subprocess, time
end = time.process_time() + 0.3
while time.process_time() < end:
    for _ in range(1000):
        pass
subprocess.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], check=True)
)";

// Also of a child that was a copy of the recorded Python before it has executed its program.
TEST_P(StackKinds, AreCountedForProgramsThatALaunchedOneStarts) {
  auto words = arguments({});
  words.insert(words.begin(), "record");
  words.emplace_back("--");
  const auto& python = GetParam().python.command;
  words.insert(words.end(), python.begin(), python.end());
  words.insert(words.end(), {"-c", kStarts});
  const auto recorded = run_tool(words);
  ASSERT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  ASSERT_NO_FATAL_FAILURE(read(recorded.err));
  EXPECT_GE(of("complete"), kFew) << kinds();
  EXPECT_GE(of("other_program"), 20U) << kinds();
  EXPECT_EQ(of("later_program"), 0U) << kinds();
  EXPECT_EQ(of("unnamed"), 0U) << kinds();
  EXPECT_THAT(messages(),
              HasSubstr(fmt::format("{} of other programs", base::grouped(of("other_program")))));
}

// More calls than either engine reads.
constexpr auto kDeep = R"(
import sys, threading
sys.setrecursionlimit(40000)
def work():
    while True:
        for _ in range(1000):
            pass
def down(n):
    return down(n - 1) if n else work()
print("ready", flush=True)
down(30000)
)";

TEST_P(StackKinds, MarkAStackThatIsTooDeep) {
  PythonProcess target{GetParam().python, kDeep};
  wait_for_cpu_time(target.pid(), kSpan);  // it is as deep as it gets
  RunningRecord running{arguments({"-p", std::to_string(target.pid().value())})};
  wait_for_cpu_time(target.pid(), kSpan);
  ASSERT_NO_FATAL_FAILURE(finish(running));
  EXPECT_EQ(of("complete"), 0U) << kinds();
  if (GetParam().engine == "bpf") {
    EXPECT_EQ(of("cut"), samples_with(samples(), "[truncated: python stack]")) << kinds();
    EXPECT_GE(of("cut"), kFew) << kinds();
    const auto pid = std::to_string(target.pid().value());
    const auto top = run_tool({"top", "--once", "-d", "1", "--json", "-p", pid});
    ASSERT_EQ(top.status, ExitStatus{}) << top.err;
    EXPECT_THAT(top.err, HasSubstr(" lack Python functions: "));
    EXPECT_EQ(nlohmann::json::parse(top.out).at("stacks").at("complete"), 0);
    const auto why = run_tool({"why", "-d", "1", "-p", pid});
    EXPECT_THAT(why.out, HasSubstr(" lack Python functions: ")) << why.err;
    return;
  }
  EXPECT_EQ(of("unnamed"), samples_with(samples(), "[unnamed Python functions]")) << kinds();
  EXPECT_GE(of("unnamed"), kFew) << kinds();
  expect_told(fmt::format("{} with functions that have no name", of("unnamed")));
}

TEST_P(StackKinds, AreCompleteOrMarkedForSubInterpreters) {
  PythonProcess target{GetParam().python,
                       target_source("sub_interpreters.py"),
                       {.interpreter_args = {}, .args = {"nested"}, .child = {}}};
  RunningRecord running{arguments({"-p", std::to_string(target.pid().value())})};
  wait_for_cpu_time(target.pid(), 2 * kSpan);
  ASSERT_NO_FATAL_FAILURE(finish(running));
  const auto marked = samples_with(samples(), "[unnamed Python functions]");
  EXPECT_EQ(of("unnamed"), marked) << kinds();
  std::size_t within = 0;
  for (const auto& sample : samples()) {
    const auto chain = sample.chain();
    within += !chain.empty() && (chain.back() == "old_leaf" || chain.back() == "new_leaf") ? 1 : 0;
  }
  if (GetParam().engine == "bpf") {
    EXPECT_EQ(marked, 0U) << kinds();
    EXPECT_GE(within, kFew) << kinds();
  } else {
    EXPECT_GE(marked, kFew) << kinds();
    expect_told(fmt::format("{} with functions that have no name", marked));
  }
}

// The usual case: nothing is said.
TEST_P(StackKinds, AreCompleteForAPlainProgram) {
  ServedTree target{GetParam().python};
  RunningRecord running{arguments({"-p", target.pid()})};
  target.serve(20, kSpan);
  ASSERT_NO_FATAL_FAILURE(finish(running));
  EXPECT_GE(of("complete"), kFew) << kinds();
  EXPECT_GE(of("complete") + of("no_python") + samples().size() / 100, samples().size()) << kinds();
  const auto report = run_tool({"report", data()});
  EXPECT_THAT(report.err, Not(HasSubstr("lack Python functions"))) << kinds();
}

INSTANTIATE_TEST_SUITE_P(Pythons, StackKinds, testing::ValuesIn(recordings()), recorded_name);

}  // namespace
}  // namespace pyinject::test
