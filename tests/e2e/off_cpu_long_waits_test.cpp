// Waits that start before an --off-cpu recording, for which perf has no sample.
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <tuple>

namespace pyinject::test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

double nanoseconds_of_monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

using Chain = std::vector<std::string>;

class OffCpuLongWaits : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override {
    const auto& [engine, minor] = GetParam();
    if (const auto lacks = engine == "bpf" ? bpf_engine_lacks() : std::string{}; !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = find_build({.minor = minor});
    if (!python_) {
      GTEST_SKIP() << "no CPython 3." << minor << " (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  [[nodiscard]] std::vector<std::string> record(base::Pid pid) const {
    return {"--engine",
            std::get<0>(GetParam()),
            "-p",
            std::to_string(pid.value()),
            "-e",
            "cpu-clock",
            "--off-cpu",
            "-o",
            directory_ / "data"};
  }
  [[nodiscard]] std::vector<ScriptedSample> waits() const {
    auto samples = scripted_samples(directory_ / "data");
    std::erase_if(samples, [](const auto& each) { return !each.event.starts_with("context-"); });
    return samples;
  }

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
};

// Lets some time pass during which nothing happens to the target.
void let_time_pass(PythonProcess& clock) {
  clock.send_line("12");
  (void)clock.read_line(kPatience);
}

TEST_P(OffCpuLongWaits, AreInTheFileOnceWithTheRecordingsLength) {
  PythonProcess target{python(), target_source("deadlocked.py")};
  PythonProcess clock{python(), target_source("waits.py")};
  (void)Untouched{target.pid()};  // waits until all its threads sleep
  const auto before = nanoseconds_of_monotonic();
  RunningRecord running{record(target.pid())};
  const auto begin = nanoseconds_of_monotonic();
  let_time_pass(clock);
  const auto end = nanoseconds_of_monotonic();
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto after = nanoseconds_of_monotonic();
  SCOPED_TRACE(running.child().err());
  std::map<std::string, Chain> chains;
  const auto samples = waits();
  for (const auto& sample : samples) {
    EXPECT_GE(static_cast<double>(sample.period), end - begin);
    EXPECT_LE(static_cast<double>(sample.period), after - before);
    chains[sample.tid] = sample.chain();
    ASSERT_FALSE(sample.frames.empty());
    EXPECT_THAT(sample.frames.front().symbol,
                testing::AnyOf(testing::HasSubstr("futex"), testing::HasSubstr("pipe")));
  }
  EXPECT_EQ(samples.size(), 3U);
  std::vector<Chain> all;
  std::ranges::transform(chains, std::back_inserter(all), [](auto& each) { return each.second; });
  const Chain thread{"Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run"};
  const auto in_thread = [&](const std::string& function) {
    auto chain = thread;
    chain.push_back(function);
    return chain;
  };
  EXPECT_THAT(all, UnorderedElementsAre(Chain{"<module>", "main_waits"},
                                        in_thread("waits_for_a_lock"), in_thread("reads_a_pipe")));
}

// The main thread waits for input since before the recording, and then runs.
TEST_P(OffCpuLongWaits, CountUntilTheThreadRuns) {
  PythonProcess target{python(), target_source("waits.py")};
  PythonProcess clock{python(), target_source("waits.py")};
  (void)Untouched{target.pid()};
  const auto before = nanoseconds_of_monotonic();
  RunningRecord running{record(target.pid())};
  const auto begin = nanoseconds_of_monotonic();
  let_time_pass(clock);
  const auto end = nanoseconds_of_monotonic();
  target.send_line("3");
  (void)target.read_line(kPatience);
  const auto after = nanoseconds_of_monotonic();
  let_time_pass(clock);  // else a wait until the end of the recording would be as long
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  SCOPED_TRACE(running.child().err());
  const auto samples = waits();
  const auto pid = std::to_string(target.pid().value());
  const auto first =
      std::ranges::find_if(samples, [&](const auto& sample) { return sample.tid == pid; });
  ASSERT_NE(first, samples.end());
  EXPECT_THAT(first->chain(), ElementsAre("<module>"));
  EXPECT_GE(static_cast<double>(first->period), end - begin);
  EXPECT_LE(static_cast<double>(first->period), after - before);
}

INSTANTIATE_TEST_SUITE_P(Engines, OffCpuLongWaits,
                         testing::Combine(testing::Values("trampoline", "bpf"),
                                          testing::Values(12, 13, 14, 15)),
                         [](const auto& one) {
                           return std::get<0>(one.param) + "3" +
                                  std::to_string(std::get<1>(one.param));
                         });

}  // namespace
}  // namespace pyinject::test
