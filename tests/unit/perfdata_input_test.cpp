#include "pyinject/base/error.hpp"
#include "pyinject/perfdata/input.hpp"
#include "support/made_perf_data.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <utility>

namespace pyinject::perfdata {
namespace {

using test::made_event;
using test::made_record;
using test::MadePerfData;
using test::padded;
using test::words;
using testing::HasSubstr;

constexpr std::uint64_t kType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;

MadePerfData one_event(std::string data = made_record(PERF_RECORD_LOST, 0, words(1, 2))) {
  MadePerfData made;
  made.events.push_back(made_event(kType, {10, 11}));
  made.data = std::move(data);
  return made;
}

Input open_bytes(const std::string& bytes) {
  auto input = Input::open(test::memory_file(bytes), "made");
  if (const auto* const why = std::get_if<NotTreatable>(&input)) {
    throw base::Error{why->why};
  }
  return std::get<Input>(std::move(input));
}

std::string why_not(const std::string& bytes) {
  const auto input = Input::open(test::memory_file(bytes), "made");
  const auto* const why = std::get_if<NotTreatable>(&input);
  return why == nullptr ? "" : why->why;
}

// All records, one after another.
std::string all_of(Input& input) {
  std::string bytes;
  while (const auto record = input.next()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record->bytes.data()) % 8, 0U);
    bytes += test::as_text(record->bytes);
  }
  EXPECT_FALSE(input.next());
  return bytes;
}

// SIZE bytes of payload that no compressor finds anything in.
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

// As perf does: one stream, flushed after each PIECE; 81 as it is, 83 with its size and padding.
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

TEST(PerfDataInput, HeadsOfSamples) {
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

TEST(PerfDataInput, EventsAsTheyAreInTheFile) {
  auto made = one_event();
  made.events.push_back(test::made_dwarf_event(kType, {20}));
  made.attr_size = sizeof(perf_event_attr) + 16;
  const auto input = open_bytes(made.bytes());
  ASSERT_EQ(input.events().size(), 2U);
  EXPECT_EQ(input.events()[0].ids, (std::vector<std::uint64_t>{10, 11}));
  EXPECT_EQ(input.events()[1].ids, std::vector<std::uint64_t>{20});
  EXPECT_EQ(input.events()[0].raw.size(), made.attr_size);
  EXPECT_FALSE(input.events()[0].has_user_stacks());
  EXPECT_TRUE(input.events()[1].has_user_stacks());
  EXPECT_EQ(input.events()[1].attr.sample_stack_user, 64U);

  made.attr_size = PERF_ATTR_SIZE_VER2;
  EXPECT_EQ(open_bytes(made.bytes()).events()[1].attr.sample_stack_user, 0U);
}

TEST(PerfDataInput, RecordsInTheirOrder) {
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

// What the kernel writes for one event after another: longer each time
// (perf_event_ksymbol_output(), perf_event_bpf_output()).
TEST(PerfDataInput, LeftoversBehindTheSampleId) {
  const auto leftovers = padded("somebody else's") + words(11, 0);
  const auto symbol = words(0xffffffffc0001000, 23) + padded("bpf_prog_62eff59b7d4f5ea1");
  const auto program = words(1, 0x62ef);
  for (const auto& events :
       {std::vector{made_event(kType, {10, 11})},
        std::vector{made_event(kType, {10}), made_event(kType, {11})},
        std::vector{made_event(kType | PERF_SAMPLE_CPU, {10}), made_event(kType, {11})}}) {
    const auto id = words(4711, 11);  // of the last event, behind the time
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
    // perf's own records, and those of which nothing is known.
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

// Another recording's event had one in the same record (perf_event_mmap_output()).
TEST(PerfDataInput, MappingsThatPretendToHaveABuildId) {
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

TEST(PerfDataInput, CompressedRecords) {
  const auto data = many_records();
  const auto round = made_record(kFinishedRound, 0, "");
  for (const std::uint32_t type : {kCompressed, kCompressed2}) {
    // Records begin in one piece and end in the next.
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
  EXPECT_THAT(damage(zero), HasSubstr("of no size at offset"));
  EXPECT_THAT(damage(seven), HasSubstr("of no size at offset"));
  EXPECT_THAT(damage(shorter), HasSubstr("cut off"));
  EXPECT_THAT(damage(good.substr(0, 5)), HasSubstr("cut off"));
  EXPECT_THAT(damage(made_record(kCompressed, 0, "this is no zstd stream")),
              HasSubstr("compressed data: "));
  EXPECT_THAT(damage(made_record(kCompressed2, 0, words(9, 0))), HasSubstr("shorter than it says"));
  EXPECT_THAT(damage(made_record(kCompressed2, 0, "")), HasSubstr("shorter than it says"));
  EXPECT_THAT(damage(compressed(zero, 100, kCompressed)), HasSubstr("no size in compressed data"));
  EXPECT_THAT(damage(made_record(kAuxtrace, 0, words(1, 2))), HasSubstr("AUX data"));
  EXPECT_THAT(damage(made_record(kAuxtraceInfo, 0, words(1, 2))), HasSubstr("AUX data"));
}

TEST(PerfDataInput, TheEventsOfARunningPerf) {
  auto made = one_event("");  // the features are listed, and not there yet
  const auto bytes = made.bytes();
  const auto events = events_of_running(test::memory_file(bytes), "made");
  ASSERT_TRUE(std::holds_alternative<std::vector<Event>>(events));
  EXPECT_THAT(std::get<std::vector<Event>>(events),
              testing::ElementsAre(testing::Field(&Event::ids, testing::ElementsAre(10, 11))));
  for (const auto& bad : {std::string{}, bytes.substr(0, 110), "PERFILE2" + words(16)}) {
    EXPECT_TRUE(
        std::holds_alternative<NotTreatable>(events_of_running(test::memory_file(bad), "x")));
  }
}

TEST(PerfDataInput, WhatIsNotForUs) {
  const auto good = one_event().bytes();
  EXPECT_EQ(why_not(good), "");
  EXPECT_THAT(why_not(""), HasSubstr("no perf.data"));
  EXPECT_THAT(why_not("PERFILE2"), HasSubstr("damaged (its size)"));
  EXPECT_THAT(why_not("PERFFILE" + good.substr(8)), HasSubstr("no perf.data of format 2"));
  EXPECT_THAT(why_not("2ELIFREP" + good.substr(8)), HasSubstr("byte order"));
  EXPECT_THAT(why_not("PERFILE2" + words(16) + good), HasSubstr("pipe"));
  EXPECT_THAT(why_not(one_event("").bytes()), HasSubstr("did not come to its end"));

  const auto with = [](auto change) {
    auto made = one_event();
    change(made);
    return why_not(made.bytes());
  };
  for (const auto& index : {std::string{"aux"}, words(0), words(0, 0), words(1) + "pyinject"}) {
    EXPECT_THAT(with([&](auto& made) { made.features[18] = index; }), HasSubstr("AUX data"));
  }
  EXPECT_THAT(with([](auto& made) { made.features[24] = "dir"; }), HasSubstr("--threads"));
  EXPECT_THAT(with([](auto& made) { made.features[12] = "damaged"; }), HasSubstr("description"));
  EXPECT_THAT(with([](auto& made) { made.events.clear(); }), HasSubstr("no events"));
  const auto with_attr = [&](auto change) {
    return with([&](auto& made) { change(made.events.front().attr); });
  };
  EXPECT_THAT(with_attr([](auto& attr) { attr.sample_type |= PERF_SAMPLE_AUX; }),
              HasSubstr("AUX data"));
  EXPECT_THAT(with_attr([](auto& attr) { attr.sample_type |= 1U << 25U; }),
              HasSubstr("sample_type has bits that are not known (0x2000000)"));
  EXPECT_THAT(with_attr([](auto& attr) {
                attr.sample_type |= PERF_SAMPLE_READ;
                attr.read_format = 32;
              }),
              HasSubstr("read_format"));
  EXPECT_THAT(with_attr([](auto& attr) {
                attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
                attr.branch_sample_type = 1U << 20U;
              }),
              HasSubstr("branch_sample_type"));
  EXPECT_THAT(with_attr([](auto& attr) { attr.__reserved_1 = 1; }), HasSubstr("deferred"));
  EXPECT_THAT(with([](auto& made) {
                made.events = {made_event(PERF_SAMPLE_ID, {1}),
                               made_event(PERF_SAMPLE_ID | PERF_SAMPLE_IP, {2})};
              }),
              HasSubstr("apart"));
  EXPECT_THAT(with([](auto& made) {
                made.events = {made_event(PERF_SAMPLE_IP), made_event(PERF_SAMPLE_IP)};
              }),
              HasSubstr("apart"));
}

TEST(PerfDataInput, SectionsOutsideOfTheFile) {
  auto made = one_event();
  made.features[3] = "host";
  const auto good = made.bytes();
  ASSERT_EQ(why_not(good), "");
  const auto with = [&](std::size_t at, std::uint64_t value) {
    auto bytes = good;
    bytes.replace(at, 8, words(value));
    return why_not(bytes);
  };
  const auto last = good.size();
  for (const auto bad : {last + 1, ~std::size_t{0}, std::size_t{1} << 63U}) {
    EXPECT_THAT(with(24, bad), HasSubstr("attributes section"));  // its offset
    EXPECT_THAT(with(32, bad), HasSubstr("attributes section"));  // its size
    EXPECT_THAT(with(40, bad), HasSubstr("damaged"));             // data
    EXPECT_THAT(with(48, bad), HasSubstr("damaged"));
    EXPECT_THAT(with(16, bad), HasSubstr("attributes of an event"));
    EXPECT_THAT(with(last - 20, bad), HasSubstr("feature 3"));  // the table of features
    EXPECT_THAT(with(last - 12, bad), HasSubstr("feature 3"));
    EXPECT_THAT(with(104 + 16 + 128, bad), HasSubstr("ids"));
    EXPECT_THAT(with(104 + 16 + 128 + 8, bad), HasSubstr("ids"));
  }
  EXPECT_THAT(with(72, ~std::uint64_t{0}), HasSubstr("table of features"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(why_not(good.substr(0, size)), "") << size;
  }
}

TEST(PerfDataInput, FeaturesOnTopOfEachOther) {
  auto made = one_event();
  for (unsigned bit = 3; bit < 9; ++bit) {
    made.features[bit] = "";
  }
  auto bytes = made.bytes();
  const auto table = bytes.size() - made.features.size() * 16;
  for (std::size_t i = 0; i < made.features.size(); ++i) {
    bytes.replace(table + 16 * i, 16, words(0, bytes.size() / 2));
  }
  EXPECT_THAT(why_not(bytes), HasSubstr("feature 5"));
}

TEST(PerfDataInput, IdsOnTopOfEachOther) {
  auto made = one_event();
  made.events.push_back(made_event(kType, {20}));
  auto bytes = made.bytes();
  constexpr std::size_t kFirst = 104 + 3 * 8 + sizeof(perf_event_attr);
  const auto half = words(0, bytes.size() / 16 * 8 + 8);
  bytes.replace(kFirst, 16, half);
  EXPECT_EQ(why_not(bytes), "");
  bytes.replace(kFirst + 16 + sizeof(perf_event_attr), 16, half);
  EXPECT_THAT(why_not(bytes), HasSubstr("ids of an event"));
}

TEST(PerfDataInput, FilesThatAreNone) {
  const test::TempDir folder;
  const auto why = [](const std::string& path) {
    const auto input = Input::open(path);
    return std::get<NotTreatable>(input).why;
  };
  EXPECT_THAT(why(folder.path()), HasSubstr("--threads"));
  EXPECT_THAT(why("/dev/null"), HasSubstr("no regular file"));
  EXPECT_THROW((void)Input::open(folder / "none"), base::SystemError);
}

}  // namespace
}  // namespace pyinject::perfdata
