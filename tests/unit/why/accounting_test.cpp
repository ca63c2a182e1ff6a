#include "why/accounting.hpp"

#include "unit/why/made_recording.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace pyinject::why {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class AccountingTest : public testing::Test, protected MadeRecording {
 protected:
  // The account of thread 1; its times add up to its wall time.
  ThreadAccount account_of_one() {
    accounts = account(recording);
    const auto found = accounts.threads.at(1);
    EXPECT_EQ(std::accumulate(found.times.begin(), found.times.end(), std::uint64_t{0}),
              found.wall);
    return found;
  }
  Accounts accounts;
};

TEST_F(AccountingTest, SharesOutTheTimeOnACpuByTheSamples) {
  in(1, 0);
  sample(1, 10, CodeKind::kEvaluator);
  sample(1, 20, CodeKind::kEvaluator);
  sample(1, 30, CodeKind::kC);
  sample(1, 40, CodeKind::kKernel);
  out(1, 80, Use::kSleep);
  const auto account = account_of_one();
  EXPECT_EQ(account.on_cpu, 80 * kMs);
  EXPECT_EQ(time_of(account, Use::kPython), 40);
  EXPECT_EQ(time_of(account, Use::kC), 20);
  EXPECT_EQ(time_of(account, Use::kKernel), 20);
  EXPECT_EQ(time_of(account, Use::kSleep), 20);
}

TEST_F(AccountingTest, DividesTheInterpretersTimeByWhatThePythonFunctionDoes) {
  in(1, 0);
  std::uint64_t ms = 0;
  for (const auto mode :
       {CodeKind::kEvaluator, CodeKind::kInterpreter, CodeKind::kCLibrary, CodeKind::kC}) {
    for (const auto does : {sample::Does::kUnknown, sample::Does::kByteCode, sample::Does::kCall}) {
      (void)sample_of(1, ms += 5, mode, does);
    }
  }
  sample_of(1, ms += 5, CodeKind::kInterpreter, sample::Does::kCall).collects = true;
  sample_of(1, ms += 5, CodeKind::kEvaluator, sample::Does::kByteCode).imports = true;
  out(1, 70, Use::kSleep);  // 5 ms for each of 14 samples
  const auto account = account_of_one();
  EXPECT_EQ(time_of(account, Use::kPython), 3 * 5 + 2 * 5 + 5) << "the evaluator; byte code";
  EXPECT_EQ(time_of(account, Use::kC), 3 * 5 + 2 * 5 + 5) << "extension modules; calls";
  EXPECT_EQ(time_of(account, Use::kCollector), 5);
  EXPECT_EQ(time_of(account, Use::kImport), 5);
}

TEST_F(AccountingTest, CountsTimeOnACpuWithoutSamplesAsUnknown) {
  in(1, 40);
  out(1, 60, Use::kSleep);
  const auto account = account_of_one();
  EXPECT_EQ(time_of(account, Use::kUnknown), 60);
  EXPECT_EQ(time_of(account, Use::kSleep), 40);
}

TEST_F(AccountingTest, CountsTheTimeFromAWakeupOnAsWaitForACpu) {
  in(1, 0);
  sample(1, 1, CodeKind::kEvaluator);
  out(1, 20, Use::kDisk);
  event(1, 30, Event::Kind::kWakeup);
  in(1, 70);
  const auto account = account_of_one();
  EXPECT_EQ(time_of(account, Use::kDisk), 10);
  EXPECT_EQ(time_of(account, Use::kPreempted), 40);
  EXPECT_EQ(time_of(account, Use::kPython), 50);
}

TEST_F(AccountingTest, CountsPreemptionAsWaitForACpuWhateverTheKernelDoes) {
  in(1, 0);
  sample(1, 1, CodeKind::kEvaluator);
  event(1, 20, Event::Kind::kPreempted);
  event(1, 30, Event::Kind::kWakeup);
  in(1, 50);
  EXPECT_EQ(time_of(account_of_one(), Use::kPreempted), 30);
}

TEST_F(AccountingTest, ASnapshotExplainsAWaitThatBeganEarlier) {
  sighting(1, 5, Use::kClient);
  in(1, 60);
  sample(1, 61, CodeKind::kEvaluator);
  EXPECT_EQ(time_of(account_of_one(), Use::kClient), 60);
}

TEST_F(AccountingTest, ASnapshotExplainsAThreadThatNeverRuns) {
  sighting(1, 5, Use::kPoll);
  EXPECT_EQ(time_of(account_of_one(), Use::kPoll), 100);
}

TEST_F(AccountingTest, AThreadOfWhichNothingIsKnownIsUnknown) {
  thread(1, "silent");
  EXPECT_EQ(time_of(account_of_one(), Use::kUnknown), 100);
}

TEST_F(AccountingTest, StartsAndEndsWithTheThread) {
  event(1, 20, Event::Kind::kStart);
  in(1, 30);
  sample(1, 40, CodeKind::kC);
  event(1, 70, Event::Kind::kExit);
  event(1, 71, Event::Kind::kOut);
  const auto account = account_of_one();
  EXPECT_EQ(account.wall, 50 * kMs);
  EXPECT_EQ(time_of(account, Use::kPreempted), 10);
  EXPECT_EQ(time_of(account, Use::kC), 40);
}

TEST_F(AccountingTest, AThreadThatEndedBeforeHasNoTime) {
  event(1, 0, Event::Kind::kExit);
  thread(1, "gone");
  EXPECT_THAT(account(recording).threads, IsEmpty());
}

TEST_F(AccountingTest, AThreadThatIsGoneHasTimeUntilItsLastSign) {
  recording.at_end.clear();
  thread(2, "never seen");
  in(1, 0);
  out(1, 20, Use::kSleep);
  sighting(1, 30, Use::kSleep);
  const auto account = account_of_one();
  EXPECT_EQ(account.wall, 30 * kMs);
  EXPECT_EQ(time_of(account, Use::kSleep), 10);
  EXPECT_THAT(accounts.threads, SizeIs(1));
}

TEST_F(AccountingTest, AThreadThatStartsAfterTheEndHasNoTime) {
  recording.at_begin.clear();
  event(1, 101, Event::Kind::kStart);
  in(1, 102);
  EXPECT_THAT(account(recording).threads, IsEmpty());
}

TEST_F(AccountingTest, AddsUpTheThreadsThatHaveOneTid) {
  event(1, 10, Event::Kind::kStart);
  in(1, 20);
  sample(1, 25, CodeKind::kC);
  event(1, 30, Event::Kind::kExit);
  event(1, 70, Event::Kind::kStart);
  in(1, 75);
  event(1, 80, Event::Kind::kExit);
  const auto account = account_of_one();
  EXPECT_EQ(account.wall, 30 * kMs);
  EXPECT_EQ(time_of(account, Use::kPreempted), 15);
  EXPECT_EQ(time_of(account, Use::kC), 15);
}

TEST_F(AccountingTest, TellsWhatAThreadWithoutSamplesDoesByThoseOfItsGroup) {
  for (const std::uint32_t tid : {1U, 2U, 3U}) {
    thread(tid, "worker-" + std::to_string(tid));
    in(tid, 0);
  }
  sample(2, 1, CodeKind::kEvaluator);
  sample(3, 2, CodeKind::kC);
  out(1, 8, Use::kSleep);
  out(2, 20, Use::kSleep);
  out(3, 40, Use::kSleep);
  const auto account = account_of_one();
  EXPECT_EQ(time_of(account, Use::kPython), 4);
  EXPECT_EQ(time_of(account, Use::kC), 4);
  EXPECT_EQ(time_of(accounts.threads.at(2), Use::kPython), 20);
  ASSERT_THAT(accounts.samples, SizeIs(2));
  EXPECT_EQ(accounts.samples.front().weight + accounts.samples.back().weight, 68.0 * kMs);
}

TEST_F(AccountingTest, CountsWhatLiesBehindALostRecordAsUnknown) {
  in(1, 0);
  sample(1, 1, CodeKind::kEvaluator);
  out(1, 20, Use::kSleep);
  out(1, 60, Use::kSleep);
  const auto account = account_of_one();
  EXPECT_EQ(time_of(account, Use::kUnknown), 40);
  EXPECT_EQ(time_of(account, Use::kSleep), 40);
}

TEST_F(AccountingTest, FindsTheStackOfASampleWithinAClocksDifference) {
  const auto work = stack({"work"});
  in(1, 0);
  sample(1, 10, CodeKind::kEvaluator, work);
  recording.python.back().time += 4'000;
  (void)account_of_one();
  ASSERT_THAT(accounts.samples, SizeIs(1));
  EXPECT_EQ(accounts.samples.front().stack, work);
}

TEST_F(AccountingTest, IgnoresWhatHappensAfterTheEnd) {
  in(1, 0);
  sample(1, 1, CodeKind::kEvaluator);
  out(1, 120, Use::kSleep);
  in(1, 130);
  EXPECT_EQ(time_of(account_of_one(), Use::kPython), 100);
}

TEST_F(AccountingTest, TellsPageFaultsFromWaitsForSwap) {
  in(1, 0);
  sample(1, 10, CodeKind::kKernel);
  recording.events.back().work = Use::kFault;
  out(1, 50, Use::kSwap);
  const auto account = account_of_one();
  EXPECT_EQ(time_of(account, Use::kFault), 50);
  EXPECT_EQ(time_of(account, Use::kSwap), 50);
}

}  // namespace
}  // namespace pyinject::why
