// The event and the time of a record.
#include "perfdata/identity.hpp"

#include "support/made_perf_data.hpp"

#include <gtest/gtest.h>

namespace pyinject::perfdata {
namespace {

using test::as_record;
using test::made_event;
using test::made_record;
using test::words;

std::string plain_sample(const std::string& payload) {
  return made_record(PERF_RECORD_SAMPLE, 0, payload);
}
std::string lost(const std::string& sample_id) {
  return made_record(PERF_RECORD_LOST, 0, words(1, 2) + sample_id);
}

std::optional<std::uint64_t> time_of(const std::string& bytes, const Event& event) {
  return time_in(as_record(bytes), event.attr);
}

TEST(PerfDataIdentity, TheIdentifierHasItsFixedPlaces) {
  const std::vector<Event> events{
      made_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, {10, 11}),
      made_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_CPU | PERF_SAMPLE_ID, {20})};
  const EventIndex index{events};
  EXPECT_EQ(index.event_of(as_record(plain_sample(words(20, 1, 2, 3)))), &events[1]);
  EXPECT_EQ(index.event_of(as_record(plain_sample(words(11, 20)))), events.data());
  EXPECT_EQ(index.event_of(as_record(lost(words(5, 20)))), &events[1]);
  EXPECT_EQ(index.event_of(as_record(lost(words(5, 30)))), nullptr);
  // perf's own records.
  EXPECT_EQ(index.event_of(as_record(lost(words(0, 0)))), events.data());
  EXPECT_EQ(index.event_of(as_record(made_record(kFinishedRound, 0, ""))), nullptr);
  EXPECT_EQ(index.event_of(as_record(plain_sample(""))), nullptr);
}

TEST(PerfDataIdentity, FindsTheIdWithoutAnIdentifier) {
  constexpr std::uint64_t kType = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ID |
                                  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
  const std::vector<Event> events{made_event(kType, {10}), made_event(kType, {20})};
  const EventIndex index{events};
  EXPECT_EQ(index.event_of(as_record(plain_sample(words(1, 2, 20, 5, 3, 4)))), &events[1]);
  EXPECT_EQ(index.event_of(as_record(lost(words(2, 20, 5, 3)))), &events[1]);
  EXPECT_EQ(index.event_of(as_record(lost(words(2, 10, 5, 3)))), events.data());
}

TEST(PerfDataIdentity, OneEventNeedsNoId) {
  std::vector<Event> events{made_event(PERF_SAMPLE_IP)};
  EXPECT_EQ(EventIndex{events}.event_of(as_record(plain_sample(words(1)))), events.data());
  EXPECT_EQ(EventIndex{events}.event_of(as_record(lost(""))), events.data());
  events.front().attr.sample_id_all = 0;
  EXPECT_EQ(EventIndex{events}.event_of(as_record(plain_sample(words(1)))), events.data());
  EXPECT_EQ(EventIndex{events}.event_of(as_record(lost(""))), nullptr);
}

TEST(PerfDataIdentity, ReadsTimesOfSamples) {
  const auto payload = words(1, 2, 3, 4);
  EXPECT_EQ(time_of(plain_sample(payload), made_event(PERF_SAMPLE_TIME)), 1U);
  EXPECT_EQ(time_of(plain_sample(payload), made_event(PERF_SAMPLE_TIME | PERF_SAMPLE_IP)), 2U);
  EXPECT_EQ(time_of(plain_sample(payload), made_event(PERF_SAMPLE_TIME | PERF_SAMPLE_IP |
                                                      PERF_SAMPLE_TID | PERF_SAMPLE_IDENTIFIER)),
            4U);
  EXPECT_EQ(time_of(plain_sample(words(1)), made_event(PERF_SAMPLE_TIME | PERF_SAMPLE_IP)),
            std::nullopt);
  EXPECT_EQ(time_of(plain_sample(payload), made_event(PERF_SAMPLE_IP)), std::nullopt);
}

TEST(PerfDataIdentity, ReadsTimesOfOthers) {
  EXPECT_EQ(time_of(lost(words(7)), made_event(PERF_SAMPLE_TIME)), 7U);
  auto event =
      made_event(PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_PERIOD);
  EXPECT_EQ(sample_id_size(event.attr), 48U);
  EXPECT_EQ(time_of(lost(words(1, 7, 2, 3, 4, 5)), event), 7U);
  EXPECT_EQ(time_of(made_record(PERF_RECORD_LOST, 0, words(7, 2, 3, 4, 5)), event), 7U);
  EXPECT_EQ(time_of(made_record(PERF_RECORD_LOST, 0, words(2, 3, 4, 5)), event), std::nullopt);
  EXPECT_EQ(time_of(made_record(PERF_RECORD_LOST, 0, ""), event), std::nullopt);
  EXPECT_EQ(time_of(made_record(kFinishedRound, 0, words(1, 7, 2, 3, 4, 5)), event), std::nullopt);
  event.attr.sample_id_all = 0;
  EXPECT_EQ(sample_id_size(event.attr), 0U);
  EXPECT_EQ(time_of(lost(words(1, 7, 2, 3, 4, 5)), event), std::nullopt);
}

TEST(PerfDataIdentity, ReadsThreadsOfOthers) {
  constexpr auto kTask = std::uint64_t{9} << 32U | 8U;
  const auto thread_of = [](const std::string& bytes, const Event& event) {
    return thread_in(as_record(bytes), event.attr);
  };
  EXPECT_EQ(thread_of(lost(words(kTask)), made_event(PERF_SAMPLE_TID)), 9U);
  auto event =
      made_event(PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_PERIOD);
  EXPECT_EQ(thread_of(made_record(PERF_RECORD_SWITCH, 0, words(kTask, 7, 2, 3, 4, 5)), event), 9U);
  EXPECT_EQ(thread_of(made_record(PERF_RECORD_SWITCH, 0, words(7, 2, 3, 4, 5)), event),
            std::nullopt);
  EXPECT_EQ(thread_of(plain_sample(words(kTask, 7, 2, 3, 4, 5)), event), std::nullopt);
  EXPECT_EQ(thread_of(lost(words(kTask)), made_event(PERF_SAMPLE_TIME)), std::nullopt);
  event.attr.sample_id_all = 0;
  EXPECT_EQ(thread_of(lost(words(kTask, 7, 2, 3, 4, 5)), event), std::nullopt);
}

// READ and other optional fields follow the period.
TEST(PerfDataIdentity, KnowsThePlacesOfPeriods) {
  EXPECT_EQ(period_offset(made_event(PERF_SAMPLE_IP).attr), 8U);
  EXPECT_EQ(period_offset(made_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                     PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                                     PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_READ |
                                     PERF_SAMPLE_CALLCHAIN)
                              .attr),
            64U);
}

}  // namespace
}  // namespace pyinject::perfdata
