#include "record/verbs/running_perf.hpp"

#include "support/made_perf_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

namespace pyinject::record {
namespace {

constexpr std::uint64_t kEnough = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;

// The name of the objection; empty: none.
std::string objection(const std::vector<perfdata::Event>& events, bool by_clock = false) {
  const auto found = check_joinable(events, by_clock);
  return found ? found->name : "";
}

TEST(RunningPerf, NamesWhatItsEventsLack) {
  const auto good = test::made_event(kEnough);
  EXPECT_EQ(objection({good}), "");
  EXPECT_EQ(objection({test::made_event(0), good}), "") << "one suitable event suffices";
  EXPECT_EQ(objection({test::made_event(kEnough ^ PERF_SAMPLE_CALLCHAIN)}), "no_callchains");
  EXPECT_EQ(objection({test::made_event(kEnough ^ PERF_SAMPLE_TIME)}), "no_times");
  EXPECT_EQ(objection({test::made_event(kEnough ^ PERF_SAMPLE_TID)}), "no_times");
}

TEST(RunningPerf, TracepointsNeedTheClockOfTheProgram) {
  const auto good = test::made_event(kEnough);
  auto tracepoint = good;
  tracepoint.attr.type = PERF_TYPE_TRACEPOINT;
  auto side_band = good;
  side_band.attr.type = PERF_TYPE_SOFTWARE;
  side_band.attr.config = PERF_COUNT_SW_DUMMY;
  EXPECT_EQ(objection({tracepoint}), "other_clock");
  EXPECT_EQ(objection({tracepoint, side_band}), "other_clock") << "the other event does not sample";
  EXPECT_EQ(objection({tracepoint, good}), "");
  tracepoint.attr.use_clockid = 1;
  tracepoint.attr.clockid = CLOCK_MONOTONIC;
  EXPECT_EQ(objection({tracepoint}), "");
}

TEST(RunningPerf, ItsClockIsThatOfItsEvents) {
  auto event = test::made_event(kEnough);
  EXPECT_EQ(clock_of({event}), std::nullopt);
  auto chosen = event;
  chosen.attr.use_clockid = 1;
  chosen.attr.clockid = CLOCK_MONOTONIC_RAW;
  EXPECT_EQ(clock_of({event, chosen}), CLOCK_MONOTONIC_RAW);
}

TEST(RunningPerf, NeedsAKnownClockWhereTheKernelHidesASamplesTime) {
  auto event = test::made_event(kEnough);
  EXPECT_EQ(objection({event}, true), "other_clock");
  event.attr.use_clockid = 1;
  event.attr.clockid = CLOCK_BOOTTIME;
  EXPECT_EQ(objection({event}, true), "other_clock");
  event.attr.clockid = CLOCK_MONOTONIC;
  EXPECT_EQ(objection({event}, true), "");
}

}  // namespace
}  // namespace pyinject::record
