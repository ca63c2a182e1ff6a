#include "why/event_rings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include <linux/perf_event.h>

namespace pyinject::why {
namespace {

using testing::ElementsAre;

// A record of TYPE with WORDS of 8 bytes.
std::vector<std::byte> made(std::uint32_t type, std::uint16_t misc,
                            const std::vector<std::uint64_t>& words) {
  const auto size = sizeof(perf_event_header) + words.size() * sizeof(std::uint64_t);
  const perf_event_header header{
      .type = type, .misc = misc, .size = static_cast<std::uint16_t>(size)};
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, words.data(), words.size() * sizeof(std::uint64_t));
  return bytes;
}

std::uint64_t pair(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32U | low;
}

TEST(RingRecord, ParsesASample) {
  RingRecord record;
  ASSERT_TRUE(parse_record(
      made(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
           {0x1000, pair(7, 8), 99, 3, PERF_CONTEXT_KERNEL, 0xffffffff81000000, 0x1234}),
      record));
  EXPECT_EQ(record.kind, RingRecord::Kind::kSample);
  EXPECT_EQ(record.pid, 7);
  EXPECT_EQ(record.tid, 8);
  EXPECT_EQ(record.time, 99);
  EXPECT_FALSE(record.user);
  EXPECT_THAT(record.kernel, ElementsAre(0xffffffff81000000, 0x1234));
}

TEST(RingRecord, ParsesSwitches) {
  RingRecord record;
  const std::vector<std::uint64_t> words{pair(1, 1), pair(7, 8), 99};
  ASSERT_TRUE(parse_record(made(PERF_RECORD_SWITCH_CPU_WIDE, 0, words), record));
  EXPECT_EQ(record.kind, RingRecord::Kind::kIn);
  EXPECT_EQ(record.tid, 8);
  ASSERT_TRUE(
      parse_record(made(PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, words), record));
  EXPECT_EQ(record.kind, RingRecord::Kind::kOut);
  ASSERT_TRUE(
      parse_record(made(PERF_RECORD_SWITCH_CPU_WIDE,
                        PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, words),
                   record));
  EXPECT_EQ(record.kind, RingRecord::Kind::kPreempted);
}

TEST(RingRecord, ParsesStartsAndLosses) {
  RingRecord record;
  ASSERT_TRUE(
      parse_record(made(PERF_RECORD_FORK, 0, {pair(7, 6), pair(9, 6), 1, pair(6, 6), 99}), record));
  EXPECT_EQ(record.kind, RingRecord::Kind::kStart);
  EXPECT_EQ(record.pid, 7);
  EXPECT_EQ(record.tid, 9);
  ASSERT_TRUE(parse_record(made(PERF_RECORD_LOST, 0, {1, 42, pair(7, 8), 99}), record));
  EXPECT_EQ(record.kind, RingRecord::Kind::kLost);
  EXPECT_EQ(record.lost, 42);
}

TEST(RingRecord, RefusesDamagedRecords) {
  RingRecord record;
  EXPECT_FALSE(parse_record({}, record));
  EXPECT_FALSE(parse_record(made(PERF_RECORD_SAMPLE, 0, {0x1000, pair(7, 8)}), record));
  EXPECT_FALSE(parse_record(made(PERF_RECORD_SAMPLE, 0, {0x1000, pair(7, 8), 99, 1000}), record));
  EXPECT_FALSE(parse_record(made(PERF_RECORD_SWITCH_CPU_WIDE, 0, {1}), record));
  auto cut = made(PERF_RECORD_SAMPLE, 0, {0x1000, pair(7, 8), 99, 0});
  cut.pop_back();
  EXPECT_FALSE(parse_record(cut, record));
}

}  // namespace
}  // namespace pyinject::why
