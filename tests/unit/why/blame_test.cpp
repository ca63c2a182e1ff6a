#include "why/blame.hpp"

#include "unit/why/made_recording.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::why {
namespace {

using testing::SizeIs;

class BlameTest : public testing::Test, protected MadeRecording {
 protected:
  // Thread 1 waits for the GIL from 20 to 60 ms.
  void wait_for_gil() {
    in(1, 0);
    sample(1, 1, CodeKind::kEvaluator, stack({"waiter"}));
    out(1, 20, Use::kFutex, stack({"waiter"}), sample::Gil::kWaitedFor);
    in(1, 60);
  }
};

TEST_F(BlameTest, SharesAWaitForTheGilAmongTheSamplesWithTheGil) {
  wait_for_gil();
  in(2, 0);
  sample(2, 10, CodeKind::kEvaluator, stack({"early"}));
  sample(2, 30, CodeKind::kEvaluator, stack({"first"}));
  sample(2, 40, CodeKind::kEvaluator, stack({"first"}));
  sample(2, 50, CodeKind::kEvaluator, stack({"second"}));
  sample(2, 55, CodeKind::kEvaluator, stack({"second"}), sample::Gil::kNone);
  const auto blames = blame_for_gil(account(recording));
  ASSERT_THAT(blames, SizeIs(2));
  EXPECT_EQ(blames[0].holder, 2);
  EXPECT_EQ(blames[0].holder_stack, stack({"first"}));
  EXPECT_EQ(blames[0].waiter, 1);
  EXPECT_EQ(blames[0].waiter_stack, stack({"waiter"}));
  EXPECT_EQ(blames[0].time + blames[1].time, 40 * kMs);
  EXPECT_EQ(blames[1].holder_stack, stack({"second"}));
}

TEST_F(BlameTest, WithoutASampleTheThreadThatReleasedTheGilHadIt) {
  const auto at_end = stack({"release"});
  wait_for_gil();
  wakeup(1, 59, 2, at_end);
  const auto blames = blame_for_gil(account(recording));
  ASSERT_THAT(blames, SizeIs(1));
  EXPECT_EQ(blames.front().holder, 2U);
  EXPECT_EQ(blames.front().holder_stack, at_end);
  EXPECT_TRUE(blames.front().released);
  EXPECT_EQ(blames.front().time, 39 * kMs);
}

TEST_F(BlameTest, AThreadThatLeavesItsCpuWithTheGilHasItMeanwhile) {
  wait_for_gil();
  in(2, 0);
  sample(2, 25, CodeKind::kEvaluator, stack({"busy"}));
  out(2, 30, Use::kFault, stack({"fault"}), sample::Gil::kHeld);
  in(2, 60);
  const auto blames = blame_for_gil(account(recording));
  ASSERT_THAT(blames, SizeIs(2));
  EXPECT_EQ(blames[0].holder_stack, stack({"fault"}));
  EXPECT_EQ(blames[0].time, 30 * kMs);
  EXPECT_EQ(blames[1].holder_stack, stack({"busy"}));
  EXPECT_EQ(blames[1].time, 10 * kMs);
}

TEST_F(BlameTest, AWaitWithoutAnySampleHasNoKnownHolder) {
  wait_for_gil();
  const auto blames = blame_for_gil(account(recording));
  ASSERT_THAT(blames, SizeIs(1));
  EXPECT_EQ(blames[0].holder, 0);
  EXPECT_EQ(blames[0].time, 40 * kMs);
}

TEST_F(BlameTest, TheWakerHadTheLockIfNoSnapshotShowsItsOwner) {
  const auto locked = stack({"locked"});
  const auto releases = stack({"releases"});
  auto& seen = sighting(1, 5, Use::kFutex, locked);  // in the first wait: its kind
  seen.object = Sighting::Object::kLock;
  seen.object_name = recording.names.number("Lock 0x1");
  out(1, 1, Use::kFutex, locked);
  wakeup(1, 31, 2, releases);
  in(1, 32);
  out(1, 40, Use::kFutex, locked);
  wakeup(1, 60, 0, 0);  // a timeout
  in(1, 61);
  const auto accounts = account(recording);
  const auto blames = blame_for_locks(recording, accounts);
  ASSERT_THAT(blames, SizeIs(2));
  EXPECT_EQ(blames[0].holder, 2);
  EXPECT_EQ(blames[0].holder_stack, releases);
  EXPECT_TRUE(blames[0].released);
  EXPECT_EQ(recording.names.text(blames[0].object), "Lock 0x1");
  EXPECT_EQ(blames[0].time, 30 * kMs);
  EXPECT_EQ(blames[1].holder, 0);
  EXPECT_FALSE(blames[1].released);
  EXPECT_EQ(blames[1].time, 20 * kMs);
}

TEST_F(BlameTest, EachSnapshotStandsForAnEqualPartOfItsWaitForALock) {
  const auto locked = stack({"locked"});
  in(1, 0);
  sample(1, 1, CodeKind::kEvaluator);
  out(1, 10, Use::kFutex, locked);
  for (const std::uint32_t owner : {2U, 2U, 3U}) {
    auto& seen = sighting(1, 20 + owner, Use::kFutex, locked);
    seen.object = Sighting::Object::kLock;
    seen.object_name = recording.names.number("Lock 0x1");
    seen.owner = owner;
  }
  in(1, 70);
  const auto accounts = account(recording);
  const auto blames = blame_for_locks(recording, accounts);
  ASSERT_THAT(blames, SizeIs(2));
  EXPECT_EQ(blames[0].holder, 2);
  EXPECT_EQ(blames[0].time, 40 * kMs);
  EXPECT_EQ(blames[1].holder, 3);
  EXPECT_EQ(blames[1].time, 20 * kMs);
}

}  // namespace
}  // namespace pyinject::why
