#include "weave/off_cpu.hpp"

#include <gtest/gtest.h>

namespace pyinject::weave {
namespace {

class OffCpuTimes : public testing::Test {
 protected:
  [[nodiscard]] std::uint64_t away(std::uint32_t tid, std::uint64_t time) {
    times_.complete();
    const auto absence = times_.absence(tid, time);
    EXPECT_TRUE(absence.has_value()) << "the thread has exited";
    return absence.value_or(OffCpu::Absence{}).nanoseconds;
  }
  [[nodiscard]] bool has_ended(std::uint32_t tid, std::uint64_t time) {
    times_.complete();
    return !times_.absence(tid, time);
  }
  [[nodiscard]] bool preempted(std::uint32_t tid, std::uint64_t time) {
    times_.complete();
    return times_.absence(tid, time).value_or(OffCpu::Absence{}).preempted;
  }
  void leaves(std::uint32_t tid, std::uint64_t sample, std::uint64_t record) {
    times_.is_sampled(tid, sample);
    times_.leaves_processor(tid, record, false);
  }
  OffCpu times_;
};

TEST_F(OffCpuTimes, LastUntilTheThreadRunsAgain) {
  times_.takes_processor(5, 300);
  times_.takes_processor(5, 100);
  times_.takes_processor(6, 150);
  times_.ends(1000);
  EXPECT_EQ(away(5, 40), 60U);
  EXPECT_EQ(away(5, 120), 180U);
  EXPECT_EQ(away(6, 120), 30U);
  EXPECT_FALSE(preempted(5, 40));
}

TEST_F(OffCpuTimes, LastToTheEndIfTheThreadDoesNotRunAgain) {
  times_.takes_processor(5, 100);
  times_.ends(1000);
  times_.ends(900);
  EXPECT_EQ(away(5, 400), 600U);
  EXPECT_EQ(away(6, 400), 600U) << "no other facts are known";
  EXPECT_EQ(away(5, 1200), 0U) << "a sample after the end";
}

// The processor switches for the last time after the record of the thread's exit.
TEST_F(OffCpuTimes, AnExitedThreadDoesNotWait) {
  times_.exits(5, 500);
  times_.ends(1000);
  EXPECT_TRUE(has_ended(5, 501));
  EXPECT_TRUE(has_ended(5, 500));
  leaves(5, 510, 511);
  times_.takes_processor(5, 600);
  EXPECT_TRUE(has_ended(5, 510)) << "preempted while exiting";
}

TEST_F(OffCpuTimes, AnotherThreadGetsTheNumber) {
  times_.exits(5, 500);
  times_.begins(5, 600);
  times_.takes_processor(5, 700);
  times_.takes_processor(5, 800);
  times_.ends(1000);
  EXPECT_TRUE(has_ended(5, 510)) << "the thread that runs later is another one";
  EXPECT_EQ(away(5, 710), 90U);
  EXPECT_EQ(away(5, 900), 100U);
}

// execve(2) by a thread other than the first: the first one exits, and the caller takes over its
// tid.
TEST_F(OffCpuTimes, AnExecveGivesTheNumberOfTheFirstThread) {
  times_.begins(5, 0);
  times_.exits(5, 500);
  times_.begins(5, 500);
  times_.ends(1000);
  EXPECT_EQ(away(5, 600), 400U);
}

// A thread must run in order to exit.
TEST_F(OffCpuTimes, ExitEndsTheWait) {
  times_.exits(5, 500);
  times_.ends(1000);
  EXPECT_EQ(away(5, 400), 100U);
}

TEST_F(OffCpuTimes, SecondSwitchEndsTheWait) {
  leaves(5, 100, 101);
  times_.leaves_processor(5, 300, true);  // and its sample was lost as well
  times_.takes_processor(5, 400);
  times_.ends(1000);
  EXPECT_EQ(away(5, 100), 200U);
  EXPECT_FALSE(preempted(5, 100));
  EXPECT_EQ(away(5, 299), 101U);
}

// The switch record can be lost as well.
TEST_F(OffCpuTimes, SecondSampleEndsTheWait) {
  times_.is_sampled(5, 100);
  times_.is_sampled(5, 300);
  times_.leaves_processor(5, 301, true);
  times_.takes_processor(5, 400);
  times_.ends(1000);
  EXPECT_EQ(away(5, 100), 200U);
  EXPECT_FALSE(preempted(5, 100));
  EXPECT_EQ(away(5, 300), 100U);
  EXPECT_TRUE(preempted(5, 300));
}

// The switch record lies between the sample and the time when the thread runs again.
TEST_F(OffCpuTimes, APreemptedThreadIsRunnable) {
  times_.leaves_processor(5, 205, true);
  times_.takes_processor(5, 100);
  times_.takes_processor(5, 300);
  times_.takes_processor(5, 400);
  times_.ends(1000);
  EXPECT_FALSE(preempted(5, 50));
  EXPECT_TRUE(preempted(5, 200));
  EXPECT_EQ(away(5, 200), 100U);
  EXPECT_TRUE(preempted(5, 205)) << "at the same time";
  EXPECT_FALSE(preempted(5, 350));
  EXPECT_FALSE(preempted(6, 200));
}

TEST_F(OffCpuTimes, ImpossibleTimesAreNoTrouble) {
  constexpr auto kLast = ~std::uint64_t{0};
  times_.takes_processor(5, kLast);
  times_.leaves_processor(5, kLast / 4, false);
  times_.ends(1000);
  EXPECT_EQ(away(5, kLast), 0U);
  EXPECT_EQ(away(5, kLast / 2), 0U);
  EXPECT_EQ(away(5, 400), 600U);
}

TEST_F(OffCpuTimes, TheFirstWaitLastsUntilTheThreadRuns) {
  times_.takes_processor(5, 90);  // before the recording
  times_.takes_processor(5, 300);
  times_.leaves_processor(5, 320, false);
  times_.exits(6, 400);
  times_.complete();
  const auto wait = [&](std::uint32_t tid, std::uint64_t seen) {
    const auto found = times_.first_wait(tid, 100, seen);
    return found ? std::pair{found->begin, found->until.value_or(0)} : std::pair{0UL, 0UL};
  };
  EXPECT_EQ(wait(5, 120), (std::pair{100UL, 300UL}));
  EXPECT_EQ(wait(6, 120), (std::pair{100UL, 400UL})) << "it was killed";
  EXPECT_EQ(wait(7, 120), (std::pair{100UL, 0UL})) << "nothing is known of it";
}

// The records of switches start a moment earlier than the samples.
TEST_F(OffCpuTimes, TheFirstWaitMayBeginBeforeTheFirstSample) {
  times_.leaves_processor(5, 110, false);  // not sampled
  times_.is_sampled(6, 110);
  times_.leaves_processor(6, 111, false);
  times_.is_sampled(7, 104);
  times_.leaves_processor(7, 105, false);
  times_.takes_processor(7, 107);
  times_.leaves_processor(7, 110, false);
  times_.takes_processor(7, 500);
  times_.complete();
  const auto wait = times_.first_wait(5, 100, 120);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->begin, 110U);
  EXPECT_EQ(wait->until, std::nullopt);
  EXPECT_FALSE(times_.first_wait(6, 100, 120)) << "its sample covers the wait";
  EXPECT_EQ(times_.first_wait(7, 100, 120)->begin, 110U);
  EXPECT_EQ(times_.first_wait(7, 100, 120)->until, 500U);
}

}  // namespace
}  // namespace pyinject::weave
