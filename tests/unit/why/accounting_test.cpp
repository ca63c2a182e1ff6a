#include "why/accounting.hpp"

#include "unit/why/made_recording.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace pyinject::why {
namespace {

using testing::SizeIs;

class AccountingTest : public testing::Test, protected MadeRecording {
 protected:
  // The account of thread 1; its times add up to its wall time.
  ThreadAccount account_of_one() {
    accounts = account(recording);
    const auto found = accounts.threads.at(1);
    EXPECT_EQ(std::accumulate(found.times.begin(), found.times.end(), std::uint64_t{0}),
              found.wall());
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
  EXPECT_EQ(account.wall(), 50 * kMs);
  EXPECT_EQ(time_of(account, Use::kPreempted), 10);
  EXPECT_EQ(time_of(account, Use::kC), 40);
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

TEST_F(AccountingTest, CountsFaultsOnACpuAndInAWait) {
  in(1, 0);
  sample(1, 10, CodeKind::kKernel);
  recording.events.back().work = Use::kFault;
  out(1, 50, Use::kSwap);
  EXPECT_EQ(time_of(account_of_one(), Use::kFault), 100);
}

}  // namespace
}  // namespace pyinject::why
