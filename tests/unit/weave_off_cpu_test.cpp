#include "weave/off_cpu.hpp"

#include <gtest/gtest.h>

namespace pyinject::weave {
namespace {

TEST(OffCpu, LastsUntilTheThreadRunsAgain) {
  OffCpu times;
  times.takes_processor(5, 300);
  times.takes_processor(5, 100);
  times.takes_processor(6, 150);
  times.ends(1000);
  times.complete();
  EXPECT_EQ(times.absence(5, 40).nanoseconds, 60U);
  EXPECT_EQ(times.absence(5, 120).nanoseconds, 180U);
  EXPECT_EQ(times.absence(6, 120).nanoseconds, 30U);
  EXPECT_FALSE(times.absence(5, 40).preempted);
}

TEST(OffCpu, OfWhoDoesNotComeBackUntilTheEnd) {
  OffCpu times;
  times.takes_processor(5, 100);
  times.ends(1000);
  times.ends(900);
  times.complete();
  EXPECT_EQ(times.absence(5, 400).nanoseconds, 600U);
  EXPECT_EQ(times.absence(6, 400).nanoseconds, 600U) << "nothing else is known of it";
  EXPECT_EQ(times.absence(5, 1200).nanoseconds, 0U) << "a sample behind the end";
}

TEST(OffCpu, OrUntilItEnds) {
  OffCpu times;
  times.exits(5, 500);
  times.ends(1000);
  times.complete();
  EXPECT_EQ(times.absence(5, 400).nanoseconds, 100U);
}

// Its own record lies between the sample and the time when the thread runs again.
TEST(OffCpu, WhoIsPreemptedCouldHaveRun) {
  OffCpu times;
  times.is_preempted(5, 205);
  times.takes_processor(5, 100);
  times.takes_processor(5, 300);
  times.takes_processor(5, 400);
  times.ends(1000);
  times.complete();
  EXPECT_FALSE(times.absence(5, 50).preempted);
  EXPECT_TRUE(times.absence(5, 200).preempted);
  EXPECT_EQ(times.absence(5, 200).nanoseconds, 100U);
  EXPECT_FALSE(times.absence(5, 350).preempted);
  EXPECT_FALSE(times.absence(6, 200).preempted);
}

}  // namespace
}  // namespace pyinject::weave
