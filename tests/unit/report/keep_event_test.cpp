#include "report/keep_event.hpp"

#include <gtest/gtest.h>

namespace pyinject::report {
namespace {

Profile two_events() {
  Profile profile;
  profile.events = {{.name = "cpu-clock", .unit = Unit::kNanoseconds},
                    {.name = "context-switches", .unit = Unit::kWaits}};
  profile.samples = {{.period = 1, .event = 0}, {.period = 2, .event = 1}, {.period = 3}};
  return profile;
}

TEST(KeepEvent, DropsTheSamplesOfOtherEvents) {
  auto profile = two_events();
  ASSERT_TRUE(keep_event(profile, "context-switches"));
  ASSERT_EQ(profile.events.size(), 1U);
  EXPECT_EQ(profile.events[0].unit, Unit::kWaits);
  ASSERT_EQ(profile.samples.size(), 1U);
  EXPECT_EQ(profile.samples[0].period, 2U);
  EXPECT_EQ(profile.samples[0].event, 0U);
}

TEST(KeepEvent, LeavesAProfileWithoutTheEventAsItIs) {
  auto profile = two_events();
  EXPECT_FALSE(keep_event(profile, "page-faults"));
  EXPECT_EQ(profile.events.size(), 2U);
  EXPECT_EQ(profile.samples.size(), 3U);
}

}  // namespace
}  // namespace pyinject::report
