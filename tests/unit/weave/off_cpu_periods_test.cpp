// The periods of post-processed context switch samples.
#include "unit/weave/made_process.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;

class OffCpuPeriods : public MadeProcess {
 protected:
  void switched(std::uint64_t time, std::uint16_t misc) {
    data_.data += test::made_record(PERF_RECORD_SWITCH, misc, behind(time));
  }
  // The periods of all samples; 0: none.
  std::vector<std::uint64_t> periods() {
    weave();
    std::vector<std::uint64_t> result;
    auto input = output();
    perfdata::Sample sample;
    while (const auto record = input.next()) {
      if (input.parse(*record, sample)) {
        constexpr std::size_t kPeriod = 4 * sizeof(std::uint64_t);
        std::uint64_t period = 0;
        if (sample.event->samples(PERF_SAMPLE_PERIOD)) {
          std::memcpy(&period, sample.before_chain.data() + kPeriod, sizeof period);
        }
        result.push_back(period);
      }
    }
    return result;
  }
};

TEST_F(OffCpuPeriods, AreTheTimesUntilTheThreadRunsAgain) {
  options_.flags.off_cpu = true;
  sample(100, "kcEc", kSwitches);
  switched(101, PERF_RECORD_MISC_SWITCH_OUT);
  switched(150, 0);
  sample(160, "cEc");
  sample(200, "kcEc", kSwitches);
  switched(201, PERF_RECORD_MISC_SWITCH_OUT);
  switched(900, 0);
  sample(1000, "kcEc", kSwitches);
  switched(1300, PERF_RECORD_MISC_SWITCH_OUT);
  EXPECT_THAT(periods(), ElementsAre(50U, 0U, 700U, 300U));
  EXPECT_EQ(summary_.off_cpu, 3U);
}

TEST_F(OffCpuPeriods, AreThereOnlyWhenAskedForAndKnown) {
  sample(100, "kcEc", kSwitches);
  switched(150, 0);
  EXPECT_THAT(periods(), ElementsAre(0U));
  options_.flags.off_cpu = true;
  EXPECT_THAT(periods(), ElementsAre(50U));
  data_.events[0].attr.context_switch = 0;
  EXPECT_THAT(periods(), ElementsAre(0U)) << "no records of switches";
  EXPECT_EQ(summary_.off_cpu, 0U);
}

TEST_F(OffCpuPeriods, AnIdleProcessorWaitsForNothing) {
  options_.flags.off_cpu = true;
  data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
                                  test::words(kSwitches, kKernel, 0, 100, 0));
  switched(900, 0);
  EXPECT_THAT(periods(), ElementsAre(1U));
  EXPECT_EQ(summary_.off_cpu, 0U);
}

// A thread's last switch follows the record of its exit. A reaped thread has no tid there; the
// first thread of a process, while others run, still has.
TEST_F(OffCpuPeriods, AnExitedThreadDoesNotWait) {
  options_.flags.off_cpu = true;
  data_.data += test::made_record(PERF_RECORD_EXIT, 0, test::words(kTask, kTask, 90) + behind(90));
  sample(100, "k", kSwitches);
  switched(101, PERF_RECORD_MISC_SWITCH_OUT);
  constexpr auto kNobody = ~std::uint64_t{0};
  data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
                                  test::words(kSwitches, kKernel, kNobody, 110, 0));
  data_.data += test::made_record(PERF_RECORD_SWITCH, 0, test::words(kNobody, 500, kClock));
  switched(900, 0);
  EXPECT_THAT(periods(), ElementsAre(1U, 1U));
  EXPECT_EQ(summary_.off_cpu, 0U);
}

// No records follow the switch until the end.
TEST_F(OffCpuPeriods, LastUntilTheEndForThoseThatStillWait) {
  options_.flags.off_cpu = true;
  sample(100, "kcEc", kSwitches);
  switched(101, PERF_RECORD_MISC_SWITCH_OUT);
  EXPECT_THAT(periods(), ElementsAre(1U));
  options_.ended_at = 5100;
  EXPECT_THAT(periods(), ElementsAre(5000U));
}

// With many lost records, those between the two samples are missing.
TEST_F(OffCpuPeriods, WaitsDoNotOverlapWhereRecordsAreLost) {
  options_.flags.off_cpu = true;
  sample(100, "kcEc", kSwitches);
  sample(400, "kcEc", kSwitches);
  switched(401, PERF_RECORD_MISC_SWITCH_OUT);
  switched(600, 0);
  EXPECT_THAT(periods(), ElementsAre(300U, 200U));
}

// Both events sample the same switches.
TEST_F(OffCpuPeriods, TwoEventsOfSwitchesHaveBothTheWholeTime) {
  options_.flags.off_cpu = true;
  data_.events.push_back(data_.events[1]);
  data_.events.back().ids = {3};
  sample(100, "kcEc", kSwitches);
  sample(101, "kcEc", 3);
  switched(102, PERF_RECORD_MISC_SWITCH_OUT);
  switched(600, 0);
  EXPECT_THAT(periods(), ElementsAre(500U, 499U));
}

TEST_F(OffCpuPeriods, ReportWhyThereAreNone) {
  weave();
  EXPECT_EQ(summary_.no_off_cpu, NoOffCpu::kNone) << "not requested";
  options_.flags.off_cpu = true;
  weave();
  EXPECT_EQ(summary_.no_off_cpu, NoOffCpu::kNone);
  data_.events[1].attr.exclude_kernel = 1;
  weave();
  EXPECT_EQ(summary_.no_off_cpu, NoOffCpu::kOnlyInUserSpace);
  data_.events[0].attr.context_switch = 0;
  weave();
  EXPECT_EQ(summary_.no_off_cpu, NoOffCpu::kNoSwitches);
}

TEST_F(OffCpuPeriods, MarkPreemptedThreads) {
  options_.flags.off_cpu = true;
  for (const std::uint64_t time : {100U, 200U}) {
    sample(time, "kcEc", kSwitches);
    record(time, python({"a"}));
    switched(time + 1, time == 100
                           ? PERF_RECORD_MISC_SWITCH_OUT
                           : PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
    switched(time + 50, 0);
  }
  EXPECT_THAT(woven(), ElementsAre("kcEac", "kcEac[preempted]"));
}

}  // namespace
}  // namespace pyinject::weave
