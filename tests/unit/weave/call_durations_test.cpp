#include "weave/call_durations.hpp"

#include <gtest/gtest.h>

namespace pyinject::weave {
namespace {

constexpr std::size_t kRead = 0;
constexpr std::size_t kWrite = 1;

class CallDurationsTest : public testing::Test {
 protected:
  // -1: unknown.
  [[nodiscard]] std::int64_t of(std::uint32_t tid, std::uint64_t time, std::size_t call = kRead) {
    calls_.complete();
    const auto duration = calls_.of(tid, time, call);
    return duration ? static_cast<std::int64_t>(duration->nanoseconds) : -1;
  }
  [[nodiscard]] bool lasts(std::uint32_t tid, std::uint64_t time) {
    calls_.complete();
    return calls_.of(tid, time, kRead).value_or(CallDurations::Duration{}).lasts;
  }
  CallDurations calls_;
};

// Buffers of several processors: the records are not in the order of time.
TEST_F(CallDurationsTest, LastUntilTheThreadLeavesTheCall) {
  calls_.leaves(5, 300, kRead);
  calls_.leaves(6, 150, kRead);
  calls_.enters(6, 120, kRead);
  calls_.enters(5, 100, kRead);
  calls_.enters(5, 400, kWrite);
  calls_.leaves(5, 401, kWrite);
  calls_.ends(1000);
  EXPECT_EQ(of(5, 100), 200);
  EXPECT_EQ(of(6, 120), 30);
  EXPECT_EQ(of(5, 400, kWrite), 1);
  EXPECT_FALSE(lasts(5, 100));
}

TEST_F(CallDurationsTest, AreUnknownWithoutTheEnd) {
  calls_.enters(5, 100, kRead);
  calls_.enters(5, 200, kRead);
  calls_.leaves(5, 210, kRead);
  calls_.enters(5, 300, kRead);
  calls_.enters(5, 400, kWrite);
  calls_.leaves(5, 410, kRead);
  calls_.leaves(5, 500, kWrite);
  calls_.ends(1000);
  EXPECT_EQ(of(5, 100), -1);
  EXPECT_EQ(of(5, 200), 10);
  EXPECT_EQ(of(5, 300), -1) << "another call follows";
  EXPECT_EQ(of(5, 400, kWrite), -1) << "the end of another call follows";
  EXPECT_EQ(of(5, 600), -1) << "never entered";
  EXPECT_EQ(of(7, 100), -1) << "no such thread";
}

TEST_F(CallDurationsTest, LastUntilTheEndIfTheThreadDoesNotReturn) {
  calls_.enters(5, 100, kRead);
  calls_.runs(5, 90);
  calls_.ends(1000);
  EXPECT_EQ(of(5, 100), 900);
  EXPECT_TRUE(lasts(5, 100));
}

TEST_F(CallDurationsTest, AreUnknownIfTheThreadRanAfterwards) {
  calls_.enters(5, 100, kRead);
  calls_.runs(5, 500);
  calls_.runs(5, 400);
  calls_.ends(1000);
  EXPECT_EQ(of(5, 100), -1);
}

// The end of one call and the start of another may be missing between two records.
TEST_F(CallDurationsTest, AreUnknownIfRecordsWereLostMeanwhile) {
  calls_.enters(5, 100, kRead);
  calls_.leaves(5, 200, kRead);
  calls_.enters(5, 300, kRead);
  calls_.leaves(5, 400, kRead);
  calls_.enters(5, 500, kRead);
  calls_.enters(6, 100, kRead);
  calls_.leaves(6, 400, kRead);
  calls_.loses(5, 600);
  calls_.loses(5, 350);
  calls_.loses(5, 250);
  calls_.ends(1000);
  EXPECT_EQ(of(5, 100), 100);
  EXPECT_EQ(of(5, 300), -1);
  EXPECT_EQ(of(5, 500), -1);
  EXPECT_EQ(of(6, 100), 300) << "of another thread";
}

// A later thread gets the same tid.
TEST_F(CallDurationsTest, LastUntilTheThreadExits) {
  calls_.enters(5, 100, kRead);
  calls_.exits(5, 130);
  calls_.runs(5, 300);
  calls_.leaves(5, 400, kRead);
  calls_.exits(5, 500);
  calls_.ends(1000);
  EXPECT_EQ(of(5, 100), 30);
  EXPECT_FALSE(lasts(5, 100));
}

TEST_F(CallDurationsTest, KnowTimesSinceTheEpoch) {
  constexpr std::uint64_t kNow = 1'800'000'000'000'000'000;
  calls_.enters(5, kNow, kRead);
  calls_.enters(6, kNow - 50, kRead);
  calls_.leaves(5, kNow + 7, kRead);
  calls_.leaves(6, kNow + 8, kRead);
  calls_.ends(kNow + 8);
  EXPECT_EQ(of(5, kNow), 7);
  EXPECT_EQ(of(6, kNow - 50), 58);
}

TEST_F(CallDurationsTest, IgnoreForgedTimesAndCalls) {
  calls_.enters(5, 100, kRead);
  calls_.leaves(5, ~std::uint64_t{0}, kRead);
  calls_.enters(5, 200, CallDurations::kMostCalls);
  calls_.ends(1000);
  EXPECT_EQ(of(5, 100), 900);
  EXPECT_EQ(of(5, ~std::uint64_t{0}), -1);
  EXPECT_EQ(of(5, 200, CallDurations::kMostCalls), -1);
}

}  // namespace
}  // namespace pyinject::weave
