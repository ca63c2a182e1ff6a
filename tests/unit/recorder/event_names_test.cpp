#include "recorder/event_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::recorder {
namespace {

std::optional<std::uint64_t> only_switches(std::string_view name) {
  return name == "sched:sched_switch" ? std::optional<std::uint64_t>{316} : std::nullopt;
}

std::vector<NamedEvent> events_of(std::string_view list) {
  auto parsed = parse_events(list, only_switches);
  const auto* const why = std::get_if<std::string>(&parsed);
  EXPECT_EQ(why, nullptr) << list << ": " << *why;
  return why == nullptr ? std::get<std::vector<NamedEvent>>(parsed) : std::vector<NamedEvent>{};
}

TEST(EventNames, AreThoseOfPerf) {
  const auto events = events_of("cycles,page-faults,L1-dcache-load-misses,r1a8,sched:sched_switch");
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0].attr.type, unsigned{PERF_TYPE_HARDWARE});
  EXPECT_EQ(events[1].attr.config, std::uint64_t{PERF_COUNT_SW_PAGE_FAULTS});
  EXPECT_EQ(events[2].attr.type, unsigned{PERF_TYPE_HW_CACHE});
  EXPECT_EQ(events[2].attr.config, 0x10000U);  // L1D, read, miss
  EXPECT_EQ(events[3].attr.type, unsigned{PERF_TYPE_RAW});
  EXPECT_EQ(events[3].attr.config, 0x1a8U);
  EXPECT_EQ(events[4].attr.type, unsigned{PERF_TYPE_TRACEPOINT});
  EXPECT_EQ(events[4].attr.config, 316U);
  EXPECT_EQ(events[4].name, "sched:sched_switch");
}

TEST(EventNames, HaveModifiers) {
  const auto events = events_of("cpu-clock:u,cycles:k,cycles:ukpp,sched:sched_switch:k");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].name, "cpu-clock:u");
  EXPECT_EQ(events[0].attr.exclude_user, 0U);
  EXPECT_EQ(events[0].attr.exclude_kernel, 1U);
  EXPECT_EQ(events[1].attr.exclude_user, 1U);
  EXPECT_EQ(events[1].attr.exclude_kernel, 0U);
  EXPECT_EQ(events[2].attr.exclude_user + events[2].attr.exclude_kernel, 0U);
  EXPECT_EQ(events[2].attr.precise_ip, 2U);
  EXPECT_EQ(events[3].attr.config, 316U);
  EXPECT_EQ(events[3].attr.exclude_user, 1U);
}

TEST(EventNames, HaveTerms) {
  const auto events = events_of("context-switches/period=1/,cpu-clock/freq=99,call-graph=no/u");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].name, "context-switches/period=1/");
  EXPECT_EQ(events[0].period, 1U);
  EXPECT_FALSE(events[0].callchain.has_value());
  EXPECT_EQ(events[1].frequency, 99U);
  EXPECT_EQ(events[1].callchain, false);
  EXPECT_EQ(events[1].attr.exclude_kernel, 1U);
}

TEST(EventNames, AreRefusedIfOnlyPerfKnowsThem) {
  // Empty: perf is the remedy.
  for (const auto* const list : {"cpu/event=0x3c/", "{cycles,instructions}", "intel_pt//",
                                 "cycles:S", "cpu-clock/config=1/", "no-such-event", ""}) {
    const auto parsed = parse_events(list, only_switches);
    const auto* const why = std::get_if<std::string>(&parsed);
    ASSERT_NE(why, nullptr) << list;
    EXPECT_EQ(*why, "") << list;
  }
  const auto parsed = parse_events("sched:none", only_switches);
  EXPECT_THAT(std::get<std::string>(parsed), testing::HasSubstr("no such tracepoint"));
}

}  // namespace
}  // namespace pyinject::recorder
