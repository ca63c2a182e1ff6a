// Where a program waits (--off-cpu) and which thread holds the GIL (--gil), compared with the
// program's own measurement.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>

namespace pyinject::test {
namespace {

std::vector<double> numbers_in(const std::string& line) {
  std::vector<double> numbers;
  for (const auto word : base::split(line, ' ')) {
    numbers.push_back(static_cast<double>(base::parse_number<long>(word).value()));
  }
  return numbers;
}

bool has(const ScriptedSample& sample, const std::string& function) {
  return std::ranges::any_of(sample.frames, [&](const ScriptFrame& frame) {
    return frame.python() && frame.function() == function;
  });
}

std::int64_t nanoseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class BpfWaits : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = find_build(GetParam());
    if (!python_) {
      GTEST_SKIP() << "no " << name(GetParam()) << " (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }
  // The program's answer to COMMAND while it is recorded with OPTIONS.
  [[nodiscard]] std::vector<double> record(const std::string& file, const std::string& command,
                                           const std::vector<std::string>& options) {
    PythonProcess target{python(), target_source(file)};
    auto arguments = bpf_record(std::to_string(target.pid().value()), data());
    arguments.insert(arguments.end(), options.begin(), options.end());
    RunningRecord running{arguments};
    target.send_line(command);
    const auto answer = target.read_line(kPatience);
    EXPECT_EQ(running.finish(), ExitStatus{});
    messages_ = running.child().err();
    return numbers_in(answer);
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] const std::string& messages() const { return messages_; }
  // 30 : 20 : 10, each within 5 %.
  void expect_waits(const std::vector<std::string>& options);

 private:
  TempDir directory_;
  std::optional<Interpreter> python_;
  std::string messages_;
};

void BpfWaits::expect_waits(const std::vector<std::string>& options) {
  const auto told = record("waits.py", "60", options);
  const std::array<std::string, 3> functions{"sleeps", "waits_for_a_lock", "waits_for_a_socket"};
  std::map<std::string, double> off;
  for (const auto& sample : samples_without_kernel_names(data())) {
    for (const auto& function : functions) {
      if (sample.event.starts_with("context-switches") && has(sample, function)) {
        off[function] += static_cast<double>(sample.period);
      }
    }
  }
  ASSERT_EQ(told.size(), functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const double ratio = off[functions.at(i)] / told.at(i);
    RecordProperty(functions.at(i), fmt::format("{:.3f}", ratio));
    EXPECT_LE(std::abs(ratio - 1), 0.05)
        << functions.at(i) << ": " << off[functions.at(i)] << " ns of " << told.at(i) << "\n"
        << messages();
  }
}

TEST_P(BpfWaits, AreAsLongAsTheProgramSays) { expect_waits({"--off-cpu"}); }

// The switches of a thread are in several files of perf's directory.
TEST_P(BpfWaits, AreAsLongWithThreadsOfPerf) { expect_waits({"--off-cpu", "--threads"}); }

INSTANTIATE_TEST_SUITE_P(Pythons, BpfWaits,
                         testing::Values(Build{.minor = 12}, Build{.minor = 13}, Build{.minor = 14},
                                         Build{.minor = 15}),
                         BuildName{});

class BpfWaitsAtTheEnd : public testing::TestWithParam<std::string> {};

// When the recording ends, all threads are waiting and produce no more samples.
TEST_P(BpfWaitsAtTheEnd, CountUntilThen) {
  const auto lacks = GetParam() == "bpf" ? bpf_engine_lacks() : std::string{};
  const auto python = plain_interpreter(13);
  if (!lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no CPython 3.13 (scripts/pythons)";
  }
  const TempDir directory;
  const std::string data = directory / "data";
  PythonProcess target{*python, target_source("waits.py")};
  PythonProcess clock{*python, target_source("waits.py")};
  const auto pid = std::to_string(target.pid().value());
  RunningRecord running{{"--engine", GetParam(), "-p", pid, "-e", "cpu-clock", "--call-graph", "fp",
                         "--off-cpu", "-o", data}};
  const auto before = nanoseconds_now();
  target.send_line("3");
  (void)target.read_line(kPatience);
  (void)Untouched{target.pid()};  // waits until all its threads sleep
  const auto begin = nanoseconds_now();
  clock.send_line("12");  // takes longer than the command above
  (void)clock.read_line(kPatience);
  const auto end = nanoseconds_now();
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto after = nanoseconds_now();
  std::map<std::string, double> longest;
  for (const auto& sample : samples_without_kernel_names(data)) {
    if (sample.event.starts_with("context-switches")) {
      longest[sample.tid] = std::max(longest[sample.tid], static_cast<double>(sample.period));
    }
  }
  ASSERT_EQ(longest.size(), 2U) << running.child().err();
  for (const auto& [tid, period] : longest) {
    EXPECT_GE(period, 0.95 * static_cast<double>(end - begin)) << tid;
    EXPECT_LE(period, static_cast<double>(after - before)) << tid;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, BpfWaitsAtTheEnd, testing::Values("trampoline", "bpf"),
                         [](const auto& one) { return one.param; });

class BpfGil : public BpfWaits {};

// Number of samples of one thread, or time.
struct GilShare {
  double with = 0;
  double all = 0;
  [[nodiscard]] double percent() const { return 100 * with / all; }
};

TEST_P(BpfGil, IsHeldForAsLongAsTheProgramSays) {
  const auto told = record("gil_shares.py", "12", {"--gil", "-F", "4999"});
  std::map<std::string, GilShare> shares;
  for (const auto& sample : samples_without_kernel_names(data())) {
    for (const std::string thread : {"first", "second"}) {
      if (has(sample, thread)) {
        shares[thread].all += 1;
        shares[thread].with += holds_gil(sample) ? 1 : 0;
      }
    }
  }
  ASSERT_EQ(told.size(), 4U);
  const auto& [first, second] = std::pair{shares["first"], shares["second"]};
  EXPECT_GE(first.all, 2000) << messages();
  const auto expect_near = [&](const std::string& what, double with, double all, double truth) {
    RecordProperty(what, fmt::format("{:.3f} of {:.3f}", with / all, truth));
    const Part part{.count = static_cast<std::size_t>(with), .all = static_cast<std::size_t>(all)};
    EXPECT_TRUE(share_is_near(part, truth, 0.02)) << what << "\n" << messages();
  };
  // The share of each thread's time in which it holds the GIL, and the first thread's share of the
  // time that the GIL is held.
  expect_near("first", first.with, first.all, told[0] / (told[0] + told[1]));
  expect_near("second", second.with, second.all, told[2] / (told[2] + told[3]));
  expect_near("owner", first.with, first.with + second.with, told[0] / (told[0] + told[2]));
}

// Off-CPU time in a function that sleeps first and then waits for the GIL, and in one that waits
// for a lock: after that, it also waits for the GIL, but briefly.
TEST_P(BpfGil, IsWaitedForAsLongAsTheProgramSays) {
  const auto told = record("gil_waits.py", "30", {"--gil", "--off-cpu"});
  ASSERT_EQ(told.size(), 3U);
  std::map<std::string, GilShare> off;  // with: the time waiting for the GIL
  GilShare held;
  for (const auto& sample : samples_without_kernel_names(data())) {
    const bool waits = has_mark(sample, "[waiting for the GIL]");
    if (!sample.event.starts_with("context-switches")) {
      EXPECT_FALSE(waits && sample.user) << testing::PrintToString(sample.chain());
      held.all += has(sample, "holds_the_gil") ? 1 : 0;
      held.with += has(sample, "holds_the_gil") && holds_gil(sample) ? 1 : 0;
      continue;
    }
    for (const std::string function : {"waits_for_the_gil", "waits_for_a_lock"}) {
      const auto time = has(sample, function) ? static_cast<double>(sample.period) : 0;
      off[function].all += time;
      off[function].with += waits ? time : 0;
    }
  }
  SCOPED_TRACE(messages());
  const auto& gil = off["waits_for_the_gil"];
  const auto& lock = off["waits_for_a_lock"];
  RecordProperty("gil", fmt::format("{} ns of {}, {} ns asleep of {}", gil.all, told[0],
                                    gil.all - gil.with, told[1]));
  RecordProperty("lock", fmt::format("{} ns of {}, GIL {}", lock.all, told[2], lock.with));
  EXPECT_LE(std::abs(gil.all / told[0] - 1), 0.05) << gil.all << " ns of " << told[0];
  EXPECT_LE(std::abs(lock.all / told[2] - 1), 0.05) << lock.all << " ns of " << told[2];
  // On a busy machine it sleeps longer than requested, which shortens its wait for the GIL; and the
  // thread that releases the lock may lose its processor before it releases the GIL. A program that
  // confuses the waits has none of the one, or all of the other.
  EXPECT_LE(gil.with, 1.05 * (told[0] - told[1]));
  EXPECT_GE(gil.with, 0.3 * (told[0] - told[1]));
  EXPECT_LE(lock.percent(), 50);
  EXPECT_GE(held.all, 500);
  EXPECT_GE(held.percent(), 98);
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfGil,
                         testing::Values(Build{.minor = 12}, Build{.minor = 13}, Build{.minor = 14},
                                         Build{.minor = 15}),
                         BuildName{});

}  // namespace
}  // namespace pyinject::test
