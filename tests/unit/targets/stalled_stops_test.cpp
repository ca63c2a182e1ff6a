#include "targets/stalled_stops.hpp"

#include <gtest/gtest.h>

namespace pyinject::targets {
namespace {

tracee::OpenStops open(std::uint64_t first, std::uint64_t second) {
  tracee::OpenStops stops{};
  stops[0] = first;
  stops[1] = second;
  return stops;
}

TEST(StalledStops, ReportsAStopThatIsOpenAtSixLooksInARow) {
  StalledStops stops;
  for (int look = 0; look < 5; ++look) {
    EXPECT_FALSE(stops.look(open(0, 7))) << look;
  }
  EXPECT_TRUE(stops.look(open(0, 7)));
}

TEST(StalledStops, IgnoresAsManyStopsThatFollowEachOther) {
  StalledStops stops;
  for (std::uint64_t serial = 1; serial < 100; ++serial) {
    EXPECT_FALSE(stops.look(open(serial, 0)));
  }
}

TEST(StalledStops, StartsAgainWhenTheStopHasEnded) {
  StalledStops stops;
  for (int look = 0; look < 5; ++look) {
    EXPECT_FALSE(stops.look(open(7, 0)));
  }
  EXPECT_FALSE(stops.look(open(0, 0)));
  EXPECT_FALSE(stops.look(open(8, 0)));
}

}  // namespace
}  // namespace pyinject::targets
