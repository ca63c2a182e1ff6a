// The tool is killed from outside at random moments. scripts/deaths runs this at length.
#include "support/checked_target.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/guards.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using base::Deadline;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

int wanted_deaths() {
  const char* const text = std::getenv("PYINJECT_DEATHS");
  return text == nullptr ? 8 : std::atoi(text);
}

// Use a new process now and then: the first activation differs from the later ones.
constexpr int kDeathsPerTarget = 4;

class RandomDeath : public testing::TestWithParam<Interpreter> {
 protected:
  [[nodiscard]] std::vector<std::string> command(bool record, const std::string& pid) const {
    if (record) {
      return {tool(), "record", "-e",  "cpu-clock", "-F",
              "99",   "-p",     pid,   "-o",        directory_ / "perf.data",
              "--",   "sleep",  "0.02"};
    }
    return {tool(), "activate", "-p", pid};
  }

  // Its duration if it is not killed.
  nanoseconds duration(bool record) {
    CheckedTarget target{GetParam(), Doing::kComputes};
    const auto begin = steady_clock::now();
    EXPECT_EQ(run(command(record, target.pid_text())).status, ExitStatus{});
    return steady_clock::now() - begin;
  }

  // Kills the tool after DELAY and returns the time from the kill until its guard has exited.
  // nullopt: the tool had finished its work.
  std::optional<nanoseconds> die(bool record, const CheckedTarget& target, nanoseconds delay) {
    bool done = false;
    auto begin = steady_clock::now();
    {
      ChildProcess child{command(record, target.pid_text())};
      const timespec span{.tv_sec = delay.count() / 1'000'000'000,
                          .tv_nsec = delay.count() % 1'000'000'000};
      ::nanosleep(&span, nullptr);
      begin = steady_clock::now();
      child.signal(SIGKILL);
      const auto status = child.wait(Deadline::after(kPatience));
      // `activate` prints this once the trampoline is on; from then on it may stay on.
      done = !status || status->signal != SIGKILL ||
             (!record && child.err().find("trampoline on") != std::string::npos);
    }
    guards_.wait_for_guards();
    const auto took = steady_clock::now() - begin;
    guards_.wait_for_orphans({target.pid()});
    return done ? std::nullopt : std::optional{took};
  }

  Guards guards_;
  TempDir directory_;
  std::mt19937 random_{static_cast<std::mt19937::result_type>(std::random_device{}())};
};

TEST_P(RandomDeath, LeavesTheTargetRightAndOff) {
  const std::array<nanoseconds, 2> spans = {duration(false), duration(true)};
  const int deaths = wanted_deaths();
  int killed = 0;
  std::vector<nanoseconds> until_off;
  while (killed < deaths && !HasFailure()) {
    const Doing doing =
        std::array{Doing::kComputes, Doing::kWaitsForLock, Doing::kReads}[random_() % 3];
    CheckedTarget target{GetParam(), doing};
    for (int i = 0; i < kDeathsPerTarget && killed < deaths && !HasFailure(); ++i) {
      const bool record = random_() % 2 == 1;
      const auto span = static_cast<std::uint64_t>(spans[record ? 1 : 0].count());
      const nanoseconds delay{static_cast<nanoseconds::rep>(random_() % span)};
      SCOPED_TRACE(fmt::format("{} killed after {} us, {}", record ? "record" : "activate",
                               delay.count() / 1000, static_cast<int>(doing)));
      const auto took = die(record, target, delay);
      if (!took && !record) {
        ASSERT_EQ(run({tool(), "deactivate", "-p", target.pid_text()}).status, ExitStatus{});
      }
      if (took) {
        ++killed;
        until_off.push_back(*took);
      }
      target.expect_unharmed_and_off();
    }
    if (!HasFailure()) {
      target.expect_usable();
    }
  }
  std::ranges::sort(until_off);
  const auto us = [&](std::size_t percent) {
    return until_off.empty() ? 0 : until_off[(until_off.size() - 1) * percent / 100].count() / 1000;
  };
  fmt::print(
      "{}: {} killed; from the kill until its guard had gone: p50 {} us, p99 {} us, most {} us\n",
      GetParam().name, killed, us(50), us(99), us(100));
}

COVER(RandomDeath, kOnlyInTheMatrix);
INSTANTIATE_TEST_SUITE_P(Pythons, RandomDeath,
                         testing::ValuesIn(interpreters({.each_version = Prefer::kChrooted})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
