// The records of a file in order: compressed, damaged, and with leftovers of the kernel removed.
#include "perfdata/input.hpp"
#include "perfdata/record.hpp"
#include "support/made_perf_data.hpp"
#include "unit/perfdata/made_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::perfdata {
namespace {

using test::made_event;
using test::made_record;
using test::padded;
using test::words;
using testing::HasSubstr;

// All records, concatenated.
std::string all_of(Input& input) {
  std::string bytes;
  while (const auto record = input.next()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record->bytes.data()) % 8, 0U);
    bytes += test::as_text(record->bytes);
  }
  EXPECT_FALSE(input.next());
  return bytes;
}

// SIZE bytes of incompressible payload.
std::string noise(std::size_t size, std::uint64_t seed) {
  std::string bytes;
  while (bytes.size() < size) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    bytes += words(seed ^ seed >> 29U);
  }
  bytes.resize(size);
  return bytes;
}

std::string many_records() {
  std::string data;
  for (std::size_t i = 0; i < 300; ++i) {
    data += made_record(PERF_RECORD_SAMPLE, 2, noise(i * 977 % 65521 / 8 * 8, i));
  }
  return data;
}

// As perf does it: one stream, flushed after each PIECE. Type 81 has raw data; 83 adds size and
// padding.
std::string compressed(const std::string& data, std::size_t piece, std::uint32_t type) {
  auto* const stream = ZSTD_createCStream();
  std::string records;
  for (std::size_t at = 0; at < data.size(); at += piece) {
    const auto part = data.substr(at, piece);
    std::string into(ZSTD_CStreamOutSize() + 2 * piece, '\0');
    ZSTD_inBuffer in{part.data(), part.size(), 0};
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    ZSTD_compressStream(stream, &out, &in);
    EXPECT_EQ(ZSTD_flushStream(stream, &out), 0U);
    into.resize(out.pos);
    if (type == kCompressed2) {
      into.insert(0, words(into.size()));
      into.resize((into.size() + 7) / 8 * 8);
    }
    records += made_record(type, 0, into);
  }
  ZSTD_freeCStream(stream);
  return records;
}

TEST(PerfDataInput, ReadsTheHeadsOfSamples) {
  std::string data;
  for (std::size_t i = 0; i < 300; ++i) {
    data += made_record(PERF_RECORD_SAMPLE, 2,
                        words(10, i, i << 32U | 7) + noise(i * 977 % 65473 / 8 * 8, i));
    data += made_record(PERF_RECORD_MMAP, 0, noise(i * 331 % 16000 / 8 * 8, i));
  }
  const auto heads = [](const std::string& records) {
    auto made = one_event(records);
    made.events.front() =
        made_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID, {10});
    auto input = open_bytes(made.bytes());
    std::string bytes;
    std::size_t samples = 0;
    while (const auto record = input.next_head()) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record->bytes.data()) % 8, 0U);
      if (record->type != PERF_RECORD_SAMPLE) {
        bytes += test::as_text(record->bytes);
        continue;
      }
      const auto head = input.head_of(*record);
      EXPECT_TRUE(head && head->ip == samples && head->pid == 7 && head->tid == samples);
      ++samples;
    }
    const auto damage = input.damage();
    input.rewind();
    EXPECT_TRUE(!damage.empty() || all_of(input).size() > 10'000'000);
    return bytes + damage + std::to_string(samples);
  };
  std::string expected;
  for (std::size_t i = 0; i < 300; ++i) {
    expected += made_record(PERF_RECORD_MMAP, 0, noise(i * 331 % 16000 / 8 * 8, i));
  }
  EXPECT_TRUE(heads(data) == expected + "300");
  EXPECT_TRUE(heads(compressed(data, 5000, kCompressed)) == expected + "300");
  const auto cut = made_record(PERF_RECORD_SAMPLE, 2, words(10, 300, 0) + noise(40000, 1));
  EXPECT_THAT(heads(data + cut.substr(0, 20)), HasSubstr("is cut off"));
  EXPECT_THAT(heads(data + cut.substr(0, 20000)), HasSubstr("is cut off"));
}

TEST(PerfDataInput, ReadsRecordsInTheirOrder) {
  const auto data = many_records();
  ASSERT_GT(data.size(), std::size_t{5} << 20U) << "more than fits a buffer";
  auto input = open_bytes(one_event(data).bytes());
  EXPECT_EQ(input.size() - input.position(), data.size());
  EXPECT_TRUE(all_of(input) == data);
  EXPECT_EQ(input.position(), input.size());
  EXPECT_FALSE(input.damaged());
  input.rewind();
  EXPECT_TRUE(all_of(input) == data);
}

// The kernel writes the same record for one event after another and it grows each time
// (perf_event_ksymbol_output(), perf_event_bpf_output()).
TEST(PerfDataInput, CutsOffLeftoversBehindTheSampleId) {
  const auto leftovers = padded("somebody else's") + words(11, 0);
  const auto symbol = words(0xffffffffc0001000, 23) + padded("bpf_prog_62eff59b7d4f5ea1");
  const auto program = words(1, 0x62ef);
  for (const auto& events :
       {std::vector{made_event(kTimed, {10, 11})},
        std::vector{made_event(kTimed, {10}), made_event(kTimed, {11})},
        std::vector{made_event(kTimed | PERF_SAMPLE_CPU, {10}), made_event(kTimed, {11})}}) {
    const auto id = words(4711, 11);  // id of the last event, after the time
    std::string expected;
    auto made = one_event("");
    made.events = events;
    for (const auto& behind : {std::string{}, leftovers, leftovers + leftovers}) {
      for (const auto& [type, content] :
           {std::pair{PERF_RECORD_KSYMBOL, symbol}, {PERF_RECORD_BPF_EVENT, program}}) {
        made.data += made_record(type, 0, content + id + behind);
        expected += made_record(type, 0, content + id);
      }
    }
    // perf's own records and unknown ones.
    const auto others = made_record(PERF_RECORD_KSYMBOL, 0, symbol + words(0, 0)) +
                        made_record(PERF_RECORD_KSYMBOL, 0, words(1, 2) + "no end..") +
                        made_record(PERF_RECORD_BPF_EVENT, 0, words(1)) +
                        made_record(PERF_RECORD_LOST, 0, words(1, 2) + id + leftovers);
    made.data += others;
    auto input = open_bytes(made.bytes());
    EXPECT_EQ(all_of(input), expected + others);
    input.rewind();
    const auto first = input.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(input.time_of(*first), 4711U);
  }
}

// The kernel added one to the same record for another recording's event (perf_event_mmap_output()).
TEST(PerfDataInput, CorrectsMappingsThatPretendToHaveABuildId) {
  constexpr std::uint16_t kPretends = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID;
  const auto mapping = [](std::uint16_t misc, const std::string& identity) {
    return made_record(
        PERF_RECORD_MMAP2, misc,
        words(7, 0x1000, 0x1000, 0) + identity + words(5) + padded("/a") + words(0, 10));
  };
  const auto file = [](std::uint32_t major, std::uint64_t generation) {
    return test::packed(major, std::uint32_t{1}) + words(4711, generation);
  };
  const auto build_id = [](char size) {
    return size + std::string(3, '\0') + std::string(static_cast<std::size_t>(size), 'x') +
           std::string(20U - static_cast<std::size_t>(size), '\0');
  };
  auto made = one_event("");
  std::string expected;
  for (const auto& identity : {file(0, 0), file(7, 0), file(8, 12), file(254, 12), file(259, 0)}) {
    made.data += mapping(kPretends, identity) + mapping(PERF_RECORD_MISC_USER, identity);
    expected += mapping(PERF_RECORD_MISC_USER, identity) + mapping(PERF_RECORD_MISC_USER, identity);
  }
  for (const char size : {'\x10', '\x14'}) {
    made.data += mapping(kPretends, build_id(size));
    expected += mapping(kPretends, build_id(size));
  }
  auto input = open_bytes(made.bytes());
  EXPECT_EQ(all_of(input), expected);
  input.rewind();
  const auto first = input.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(parse_mapping(*first).value_or(Mapping{}).inode, 4711U);

  made.events.front().attr.build_id = 1;
  made.data = mapping(kPretends, build_id('\x08'));
  auto other = open_bytes(made.bytes());
  EXPECT_EQ(all_of(other), made.data);
}

TEST(PerfDataInput, ReadsCompressedRecords) {
  const auto data = many_records();
  const auto round = made_record(kFinishedRound, 0, "");
  for (const std::uint32_t type : {kCompressed, kCompressed2}) {
    // Records that start in one piece and end in the next.
    auto input = open_bytes(one_event(compressed(data, 60'000, type) + round).bytes());
    EXPECT_TRUE(all_of(input) == data + round);
    EXPECT_FALSE(input.damaged());
    input.rewind();
    EXPECT_TRUE(all_of(input) == data + round);
  }
}

TEST(PerfDataInput, CompressedDataMayBeMuchLargerThanTheirRecord) {
  std::string data;
  for (int i = 0; i < 1000; ++i) {
    data += made_record(PERF_RECORD_SAMPLE, 2, std::string(65512, 's'));
  }
  const auto small = compressed(data, data.size(), kCompressed);
  ASSERT_LT(small.size(), 16384U);
  auto input = open_bytes(one_event(small).bytes());
  EXPECT_TRUE(all_of(input) == data);
}

TEST(PerfDataInput, TheEndOfTheLastCompressedRecordMayBeMissing) {
  const auto whole = made_record(PERF_RECORD_LOST, 0, words(1, 2));
  auto input =
      open_bytes(one_event(compressed(whole + whole.substr(0, 10), 100, kCompressed2)).bytes());
  EXPECT_EQ(all_of(input), whole);
  EXPECT_FALSE(input.damaged());
}

TEST(PerfDataInput, DamagedRecordsEndIt) {
  const auto good = made_record(PERF_RECORD_LOST, 0, words(1, 2));
  const auto damage = [&](const std::string& bad) {
    auto input = open_bytes(one_event(good + bad).bytes());
    EXPECT_EQ(all_of(input), good);
    EXPECT_TRUE(input.damaged());
    return input.damage();
  };
  auto zero = good;
  zero[6] = 0;
  auto seven = good;
  seven[6] = 7;
  auto shorter = good;
  shorter.resize(9);
  EXPECT_THAT(damage(zero), HasSubstr("of size 0 at offset"));
  EXPECT_THAT(damage(seven), HasSubstr("of size 0 at offset"));
  EXPECT_THAT(damage(shorter), HasSubstr("cut off"));
  EXPECT_THAT(damage(good.substr(0, 5)), HasSubstr("cut off"));
  EXPECT_THAT(damage(made_record(kCompressed, 0, "this is no zstd stream")),
              HasSubstr("compressed data: "));
  EXPECT_THAT(damage(made_record(kCompressed2, 0, words(9, 0))), HasSubstr("shorter than it says"));
  EXPECT_THAT(damage(made_record(kCompressed2, 0, "")), HasSubstr("shorter than it says"));
  EXPECT_THAT(damage(compressed(zero, 100, kCompressed)),
              HasSubstr("of size 0 in compressed data"));
  EXPECT_THAT(damage(made_record(kAuxtrace, 0, words(1, 2))), HasSubstr("AUX data"));
  EXPECT_THAT(damage(made_record(kAuxtraceInfo, 0, words(1, 2))), HasSubstr("AUX data"));
}

}  // namespace
}  // namespace pyinject::perfdata
