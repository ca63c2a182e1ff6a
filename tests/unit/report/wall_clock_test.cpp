#include "report/wall_clock.hpp"

#include "unit/report/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pyinject::report {
namespace {

using testing::SizeIs;

class WallClock : public MadeProfile {};

TEST_F(WallClock, HasCpuTimeAndWaitsInOneEvent) {
  add(1, 2);     // 10 ns each
  wait(7, 30);   // load() waits in the kernel
  wait(10, 40);  // main() has the GIL meanwhile
  ASSERT_TRUE(add_wall_clock(profile));
  EXPECT_EQ(profile.events.front().name, "wall clock");
  EXPECT_THAT(profile.samples, SizeIs(8));
  const auto tables = make_tables(profile, {.by = By::kMixed, .by_total = true});
  const auto wall = std::ranges::find(tables, "wall clock", &Table::event);
  ASSERT_NE(wall, tables.end());
  EXPECT_EQ(wall->weight, 90U);
  const auto& rows = wall->rows;
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front().name, "main");
  EXPECT_EQ(rows.front().counts.total, 90U);
  EXPECT_EQ(rows.front().counts.self(), 20U) << "on a CPU";
  std::uint64_t waited = 0;
  for (const auto& row : rows) {
    waited += row.name.starts_with("waits: ") ? row.counts.self() : 0;
  }
  EXPECT_EQ(waited, 70U);
}

TEST_F(WallClock, NeedsBoth) {
  add(1, 2);
  profile.events.erase(profile.events.begin());  // the waits
  for (auto& sample : profile.samples) {
    sample.event = 0;
  }
  EXPECT_FALSE(add_wall_clock(profile));
  EXPECT_THAT(profile.samples, SizeIs(2));
}

}  // namespace
}  // namespace pyinject::report
