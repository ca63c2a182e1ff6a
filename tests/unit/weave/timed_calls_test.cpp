// The periods of system calls whose enter and exit tracepoints were recorded.
#include "unit/weave/made_process.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;
using testing::Pair;

class TimedCalls : public MadeProcess {
 protected:
  static constexpr std::uint64_t kEnter = 3;  // ids of events
  static constexpr std::uint64_t kExit = 4;
  static constexpr std::uint64_t kUsers = 5;
  static constexpr TimedCall kRead{.enter = 842, .exit = 841};

  TimedCalls() {
    add_event(kEnter, kRead.enter, kType | PERF_SAMPLE_PERIOD);
    add_event(kExit, kRead.exit, kType);
    options_.flags.timed_calls = {kRead};
  }
  void add_event(std::uint64_t id, std::uint64_t tracepoint, std::uint64_t type) {
    auto& attr = data_.events.emplace_back(test::made_event(type, {id})).attr;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = tracepoint;
    attr.sample_period = 1;
  }
  // With the period that perf writes.
  void traced(std::uint64_t time, std::uint64_t event = kEnter) {
    data_.data +=
        test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                          event == kEnter ? test::words(event, kCode, kTask, time, 1, 1, kCode)
                                          : test::words(event, kCode, kTask, time, 1, kCode));
  }
  // Event and period of each sample; 0: none.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> periods() {
    weave();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
    auto input = output();
    perfdata::Sample sample;
    while (const auto record = input.next()) {
      if (input.parse(*record, sample)) {
        constexpr std::size_t kPeriod = 4 * sizeof(std::uint64_t);
        std::uint64_t period = 0;
        if (sample.event->samples(PERF_SAMPLE_PERIOD)) {
          std::memcpy(&period, sample.before_chain.data() + kPeriod, sizeof period);
        }
        result.emplace_back(sample.event->ids.front(), period);
      }
    }
    return result;
  }
};

TEST_F(TimedCalls, HaveTheTimeUntilTheyReturnAndNoSecondSample) {
  traced(100);
  sample(120, "cEc");
  traced(150, kExit);
  traced(1000);
  traced(1700, kExit);
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 50U), Pair(kClock, 0U), Pair(kEnter, 700U)));
  EXPECT_EQ(summary_.samples, 3U);
  EXPECT_EQ(summary_.timed_calls, 2U);
  EXPECT_EQ(summary_.lasting_calls, 0U);
}

TEST_F(TimedCalls, HavePeriodsWhereTheEventHadNone) {
  data_.events[2].attr.sample_type = kType;
  data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                                  test::words(kEnter, kCode, kTask, 100, 1, kCode));
  traced(150, kExit);
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 50U)));
}

TEST_F(TimedCalls, AreTimedOnlyOnRequest) {
  options_.flags.timed_calls.clear();
  traced(100);
  traced(150, kExit);
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 1U), Pair(kExit, 0U)));
}

// The kernel ignores the period of an event whose samples have periods, as perf's do.
TEST_F(TimedCalls, AreTimedOnlyIfEachHitIsSampled) {
  for (auto& event : data_.events) {
    event.attr.sample_period = 10;
  }
  traced(100);
  traced(150, kExit);
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 1U), Pair(kExit, 0U))) << "ends have no periods";
  data_.events[3].attr.sample_period = 1;
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 50U)));
  data_.events[2].attr.freq = 1;
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 1U), Pair(kExit, 0U)));
}

TEST_F(TimedCalls, HaveNoPeriodToBeAdvised) {
  data_.events.erase(data_.events.begin());
  data_.data.clear();
  traced(100);
  weave();
  EXPECT_FALSE(summary_.by_period);
  EXPECT_FALSE(summary_.by_frequency);
}

// The records of the user's event are between those of this tool's.
TEST_F(TimedCalls, LeaveAnEarlierEventOfTheSameTracepoint) {
  add_event(kUsers, kRead.exit, kType);
  std::swap(data_.events[3], data_.events[4]);
  traced(100);
  traced(150, kUsers);
  traced(151, kExit);
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 51U), Pair(kUsers, 0U)));
}

TEST_F(TimedCalls, LastUntilTheEndOrAreCountedAsUntimed) {
  options_.ended_at = 5100;
  traced(100);
  traced(200);
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 1U), Pair(kEnter, 4900U)));
  EXPECT_EQ(summary_.timed_calls, 1U);
  EXPECT_EQ(summary_.lasting_calls, 1U);
  EXPECT_EQ(summary_.untimed_calls, 1U);
}

TEST_F(TimedCalls, AreUntimedAcrossLosses) {
  traced(100);
  data_.data += test::made_record(PERF_RECORD_LOST, 0, test::words(kEnter, 17) + behind(140));
  traced(150, kExit);
  traced(200);
  traced(250, kExit);
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 1U), Pair(kEnter, 50U)));
  EXPECT_EQ(summary_.untimed_calls, 1U);
}

TEST_F(TimedCalls, EndWithTheirThread) {
  options_.ended_at = 5100;
  traced(100);
  data_.data +=
      test::made_record(PERF_RECORD_EXIT, 0, test::words(kTask, kTask, 130) + behind(130));
  EXPECT_THAT(periods(), ElementsAre(Pair(kEnter, 30U)));
}

}  // namespace
}  // namespace pyinject::weave
