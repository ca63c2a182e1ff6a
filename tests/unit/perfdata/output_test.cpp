#include "perfdata/output.hpp"

#include "base/file.hpp"
#include "perfdata/file_header.hpp"
#include "perfdata/names_section.hpp"
#include "pyinject/base/error.hpp"
#include "support/made_perf_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::perfdata {
namespace {

using test::made_dwarf_event;
using test::made_event;
using test::made_record;
using test::MadePerfData;
using test::packed;
using test::words;

constexpr std::uint64_t kSampleType =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
constexpr unsigned kBuildIdTable = 2;
constexpr unsigned kDescription = 12;
constexpr unsigned kAuxtrace = 18;
constexpr unsigned kCompressedFeature = 27;
constexpr unsigned kStackCounts = 254;
constexpr unsigned kNames = 255;

Input open(base::UniqueFd file) { return std::get<Input>(Input::open(std::move(file), "made")); }

using Write = std::function<void(Input&, Output&)>;

void unchanged(Input& input, Output& output) {
  while (const auto record = input.next()) {
    output.write(*record);
  }
}

std::string contents(int fd) {
  EXPECT_EQ(::lseek(fd, 0, SEEK_SET), 0);
  return base::read_fd(fd, std::size_t{64} << 20U, "the output");
}

std::string rewrite(const MadePerfData& made, const Write& write,
                    const std::vector<BuildId>& additional = {}) {
  auto input = open(made.file());
  auto file = test::memory_file("");
  Output output{file.get(), input};
  write(input, output);
  output.finish(additional);
  auto bytes = contents(file.get());
  EXPECT_EQ(output.size(), bytes.size());
  return bytes;
}

TEST(PerfDataOutput, KeepsAFileWithoutUserStacks) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10, 11}), made_event(kSampleType | PERF_SAMPLE_IP, {20})};
  made.attr_size = sizeof(perf_event_attr) + 8;
  for (std::size_t i = 0; i < 100; ++i) {
    made.data += made_record(PERF_RECORD_SAMPLE, 2, words(10, i, 0) + std::string(i * 400, 'x'));
  }
  made.data += made_record(PERF_RECORD_LOST, 0, words(1, 2)) +
               made_record(PERF_RECORD_THROTTLE, 0, words(1, 2, 3)) +
               made_record(12345, 7, words(1));
  made.features = {{kBuildIdTable, std::string(100, 'b')},
                   {3, std::string(std::size_t{3} << 20U, 'h')},
                   {kDescription, made.description()},
                   {19, ""},
                   {63, "unknown"}};
  EXPECT_TRUE(rewrite(made, unchanged) == made.bytes());
}

TEST(PerfDataOutput, HasTheLastCountsOfStacks) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(PERF_RECORD_LOST, 0, words(1, 2));
  StackCounts counts;
  counts.add(StackKind::kCut);
  const auto rewritten = [&made](const StackCounts& given) {
    auto input = open(made.file());
    auto file = test::memory_file("");
    Output output{file.get(), input};
    unchanged(input, output);
    output.finish({}, {}, given);
    return open(std::move(file)).features().stack_counts();
  };
  EXPECT_EQ(rewritten({}), StackCounts{});
  EXPECT_EQ(rewritten(counts), counts);
  made.features = {{kStackCounts, "complete 4\ncut 2\n"}};
  EXPECT_EQ(rewritten(counts), counts);
  EXPECT_EQ(rewritten({}).of(StackKind::kComplete), 4U) << "those of the input";
}

TEST(PerfDataOutput, MarksAStackThatDoesNotFit) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(PERF_RECORD_SAMPLE, 2, words(10, 5, 0));
  static constexpr std::size_t kTooMany = 9000;
  static constexpr std::uint64_t kMark = 0xabc;
  bool whole = true;
  const auto bytes = rewrite(made, [&whole](Input& input, Output& output) {
    Sample sample;
    const auto record = input.next();
    ASSERT_TRUE(record && input.parse(*record, sample));
    EXPECT_TRUE(output.write_sample(sample, std::vector<std::uint64_t>{7}, {}, kMark));
    whole = output.write_sample(sample, std::vector<std::uint64_t>(kTooMany, 7), {}, kMark);
  });
  EXPECT_FALSE(whole);
  auto input = open(test::memory_file(bytes));
  Sample sample;
  std::vector<std::vector<std::uint64_t>> chains;
  while (const auto record = input.next()) {
    ASSERT_TRUE(input.parse(*record, sample));
    chains.push_back(sample.chain);
  }
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_EQ(chains[0], std::vector<std::uint64_t>{7});
  EXPECT_GT(chains[1].size(), 8000U);
  EXPECT_EQ(chains[1].back(), kMark);
  EXPECT_EQ(std::ranges::count(chains[1], kMark), 1);
}

TEST(PerfDataOutput, EventsLoseTheirUserStacks) {
  MadePerfData made;
  made.events = {made_dwarf_event(kSampleType | PERF_SAMPLE_CPU, {10}),
                 made_event(kSampleType, {20})};
  made.attr_size = sizeof(perf_event_attr) + 8;
  const auto before = words(10, 5, 0);
  made.data = made_record(PERF_RECORD_SAMPLE, 1,
                          before + words(2, 7, 8) + words(0, 8) + "the dump" + words(8)) +
              made_record(PERF_RECORD_SAMPLE, 1, words(20, 5, 0));
  made.features = {{kDescription, made.description()}, {kCompressedFeature, std::string(20, 'z')}};
  const auto bytes = rewrite(made, [](Input& input, Output& output) {
    Sample sample;
    auto record = input.next();
    ASSERT_TRUE(record && input.parse(*record, sample));
    EXPECT_THROW(output.write(*record), base::Error);
    EXPECT_TRUE(output.write_sample(sample, std::vector<std::uint64_t>{1, 2, 3}));
    record = input.next();
    ASSERT_TRUE(record);
    output.write(*record);
  });

  auto expected = made;
  auto& attr = expected.events[0].attr;
  attr.sample_type = kSampleType | PERF_SAMPLE_CPU;
  attr.sample_regs_user = 0;
  attr.sample_stack_user = 0;
  attr.exclude_callchain_user = 0;
  expected.data = made_record(PERF_RECORD_SAMPLE, 1, before + words(3, 1, 2, 3)) +
                  made_record(PERF_RECORD_SAMPLE, 1, words(20, 5, 0));
  expected.features = {{kDescription, expected.description()}};
  EXPECT_TRUE(bytes == expected.bytes());
}

Event made_switch_event(std::uint64_t sample_type, std::vector<std::uint64_t> ids) {
  auto event = made_event(sample_type, std::move(ids));
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  event.attr.sample_period = 1;
  return event;
}

// Copies each sample with a new period: 77 for the first one, then 1.
std::string with_periods(const MadePerfData& made) {
  auto input = open(made.file());
  auto file = test::memory_file("");
  Output output{file.get(), input, &Event::samples_each_switch};
  Sample sample;
  std::uint64_t period = 77;
  while (const auto record = input.next()) {
    if (input.parse(*record, sample)) {
      EXPECT_TRUE(output.write_sample(sample, sample.chain, period));
      period = 1;
    } else {
      output.write(*record);
    }
  }
  output.finish({});
  return contents(file.get());
}

TEST(PerfDataOutput, SwitchesGetPeriods) {
  constexpr std::uint64_t kOthers =
      PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CPU | PERF_SAMPLE_READ;
  MadePerfData made;
  made.events = {made_switch_event(kSampleType | kOthers, {10}),
                 made_switch_event(kSampleType | PERF_SAMPLE_PERIOD, {20}),
                 made_event(kSampleType, {30})};
  const auto front = words(10, 1, 2, 3, 4);
  const auto back = words(5, 2, 8, 9);  // READ and the callchain
  made.data = made_record(PERF_RECORD_SAMPLE, 1, front + back) +
              made_record(PERF_RECORD_SAMPLE, 1, words(20, 5, 99, 0)) +
              made_record(PERF_RECORD_SAMPLE, 1, words(30, 5, 0)) +
              made_record(PERF_RECORD_LOST, 0, words(1, 2, 3, 10));
  made.features = {{kDescription, made.description()}};
  auto expected = made;
  expected.events[0].attr.sample_type |= PERF_SAMPLE_PERIOD;
  expected.data = made_record(PERF_RECORD_SAMPLE, 1, front + words(77) + back) +
                  made_record(PERF_RECORD_SAMPLE, 1, words(20, 5, 1, 0)) +
                  made_record(PERF_RECORD_SAMPLE, 1, words(30, 5, 0)) +
                  made_record(PERF_RECORD_LOST, 0, words(1, 2, 3, 10));
  expected.features = {{kDescription, expected.description()}};
  EXPECT_TRUE(with_periods(made) == expected.bytes());
}

TEST(PerfDataOutput, OnlyEachSwitchHasAPeriodOfItsOwn) {
  MadePerfData made;
  made.events = {made_switch_event(kSampleType, {10}), made_switch_event(kSampleType, {20}),
                 made_switch_event(kSampleType, {30})};
  made.events[0].attr.sample_period = 2;
  made.events[1].attr.freq = 1;
  made.events[2].attr.config = PERF_COUNT_SW_CPU_CLOCK;
  made.data = made_record(PERF_RECORD_SAMPLE, 1, words(10, 5, 0)) +
              made_record(PERF_RECORD_SAMPLE, 1, words(20, 5, 0)) +
              made_record(PERF_RECORD_SAMPLE, 1, words(30, 5, 0));
  EXPECT_TRUE(with_periods(made) == made.bytes());
}

TEST(PerfDataOutput, ASampleThatHasToGetAPeriodCannotStayAsItIs) {
  MadePerfData made;
  made.events = {made_switch_event(kSampleType, {10})};
  made.data = made_record(PERF_RECORD_SAMPLE, 1, words(10, 5, 0));
  auto input = open(made.file());
  auto file = test::memory_file("");
  Output output{file.get(), input, &Event::samples_each_switch};
  EXPECT_THROW(output.write(*input.next()), base::Error);
}

TEST(PerfDataOutput, ASampleWithoutRoomForItsPeriodIsNotWritten) {
  MadePerfData made;
  constexpr std::uint64_t kMostOfASample = 65528 - 8 - 3 * 8;
  made.events = {
      made_switch_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW, {10})};
  made.data = made_record(PERF_RECORD_SAMPLE, 1,
                          words(10, 5) + packed(static_cast<std::uint32_t>(kMostOfASample + 4)) +
                              std::string(kMostOfASample + 4, 'r'));
  EXPECT_THROW((void)with_periods(made), base::Error);
}

// As `perf inject` writes them when it turns a pipe's data into a file.
TEST(PerfDataOutput, AttributesInRecordsLoseThemToo) {
  MadePerfData made;
  made.events = {made_dwarf_event(kSampleType, {10})};
  made.data = made_record(kHeaderAttr, 0, packed(made.events[0].attr) + words(10)) +
              made_record(kHeaderAttr, 0, "") + made_record(kHeaderAttr, 0, words(1));
  auto expected = made;
  auto& attr = expected.events[0].attr;
  attr = made_event(kSampleType).attr;
  expected.data = made_record(kHeaderAttr, 0, packed(attr) + words(10)) +
                  made_record(kHeaderAttr, 0, "") + made_record(kHeaderAttr, 0, words(1));
  EXPECT_TRUE(rewrite(made, unchanged) == expected.bytes());
}

TEST(PerfDataOutput, WritesMappings) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(kFinishedRound, 0, "");
  const auto mapping = Mapping{.pid = 1, .tid = 2, .start = 3, .size = 4, .file = "image"};
  auto again = open(test::memory_file(
      rewrite(made, [&](Input&, Output& output) { output.write_mapping(mapping); })));
  const auto record = again.next();
  ASSERT_TRUE(record);
  EXPECT_EQ(parse_mapping(*record).value_or(Mapping{}).file, "image");
  EXPECT_EQ(again.time_of(*record), 0U);
  EXPECT_EQ(again.event_of(*record), again.events().data());
  EXPECT_FALSE(again.next() || again.damaged());
}

TEST(PerfDataOutput, AddsBuildIds) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(kFinishedRound, 0, "");
  made.features = {{3, "host"}};
  const std::vector<BuildId> ids{
      {.id = std::vector<std::byte>(20, std::byte{'i'}), .file = "/tmp/image"},
      {.id = std::vector<std::byte>(8, std::byte{'j'}), .file = std::string(64, 'f')}};
  // struct perf_record_header_build_id, with misc USER | BUILD_ID_SIZE. Names end with a zero byte
  // and are padded to a multiple of 64 bytes.
  const auto line = [](std::uint16_t size, const std::string& id, const std::string& name) {
    auto bytes = packed(std::uint32_t{0}, std::uint16_t{0x8002}, size, 0xffffffffU) + id;
    bytes.resize(32, '\0');
    bytes += packed(static_cast<std::uint32_t>(id.size())) + name;
    bytes.resize(size, '\0');
    return bytes;
  };
  const auto lines = line(36 + 64, std::string(20, 'i'), "/tmp/image") +
                     line(36 + 128, std::string(8, 'j'), std::string(64, 'f'));
  auto expected = made;
  expected.features[kBuildIdTable] = lines;
  expected.features[kAuxtrace] = words(0) + "pyinject";  // for `perf archive`
  EXPECT_TRUE(rewrite(made, unchanged, ids) == expected.bytes());
  made.features[kBuildIdTable] = std::string(100, 'b');
  expected.features[kBuildIdTable] = std::string(100, 'b') + lines;
  EXPECT_TRUE(rewrite(made, unchanged, ids) == expected.bytes());
  made = expected;  // our own output is readable
  expected.features[kBuildIdTable] += lines;
  EXPECT_TRUE(rewrite(made, unchanged, ids) == expected.bytes());
  EXPECT_TRUE(rewrite(made, unchanged) == made.bytes());
}

std::vector<std::string> images_in(const std::string& bytes) {
  std::vector<std::string> images;
  for (const auto& image : open(test::memory_file(bytes)).features().images()) {
    images.emplace_back(reinterpret_cast<const char*>(image.data()), image.size());
  }
  return images;
}

TEST(PerfDataOutput, HoldsImagesBehindThoseOfTheInput) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(kFinishedRound, 0, "");
  made.features = {{3, "host"}};
  const auto first = std::string(100'000, 'x');
  const auto with = [](MadePerfData input, const std::string& image, std::size_t left_out = 0) {
    auto opened = open(input.file());
    auto file = test::memory_file("");
    Output output{file.get(), opened};
    unchanged(opened, output);
    EXPECT_EQ(output.finish({}, std::vector<Bytes>{std::as_bytes(std::span{image})}), left_out);
    return contents(file.get());
  };
  EXPECT_THAT(images_in(made.bytes()), testing::IsEmpty());
  const auto bytes = with(made, first);
  EXPECT_LT(bytes.size(), made.bytes().size() + 1000) << "they are compressed";
  EXPECT_THAT(images_in(bytes), testing::ElementsAre(first));

  std::vector<std::byte> section;
  ASSERT_TRUE(append_image(std::as_bytes(std::span{first}), section));
  // A feature of the header, as before 0.3.
  made.features[kNames] = {reinterpret_cast<const char*>(section.data()), section.size()};
  EXPECT_THAT(images_in(made.bytes()), testing::ElementsAre(first));
  EXPECT_THAT(images_in(with(made, "second")), testing::ElementsAre(first, "second"));
  EXPECT_TRUE(rewrite(made, unchanged) == bytes) << "behind what perf reads";
  const std::string largest(kMostNames - first.size() + 1, '\0');
  EXPECT_TRUE(with(made, largest, 1) == bytes) << "too much for those who read it";
}

// `perf inject` crashes on features that it does not know.
TEST(PerfDataOutput, HasOnlyFeaturesOfPerfInItsHeader) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(kFinishedRound, 0, "");
  made.features = {{3, "host"}, {kNames, "names"}, {kNames - 1, "counts"}};
  const auto bytes = rewrite(made, unchanged);
  FileStart start;
  ASSERT_GE(bytes.size(), sizeof start);
  std::memcpy(&start, bytes.data(), sizeof start);
  EXPECT_THAT(start.features, testing::ElementsAre(1U << 3U, 0, 0, 0));
  EXPECT_TRUE(bytes.ends_with("PYINJECT"));
}

TEST(PerfDataOutput, ImagesAreReadUpToTheDamage) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(kFinishedRound, 0, "");
  std::vector<std::byte> section;
  for (const std::string_view image : {"first", "second"}) {
    ASSERT_TRUE(append_image(std::as_bytes(std::span{image}), section));
  }
  const std::string whole{reinterpret_cast<const char*>(section.data()), section.size()};
  made.features = {{kNames, whole.substr(0, whole.size() - 1)}};
  EXPECT_THAT(images_in(made.bytes()), testing::ElementsAre("first"));
  made.features = {{kNames, "no frame of zstd"}};
  EXPECT_THAT(images_in(made.bytes()), testing::IsEmpty());
  // A frame that says that it holds 2^60 bytes (RFC 8878, 3.1.1.1).
  made.features = {{kNames, std::string{"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x10\x01\0\0", 16}}};
  EXPECT_THAT(images_in(made.bytes()), testing::IsEmpty());
}

TEST(PerfDataOutput, IsNoRecordingUntilItsEndIsWritten) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  for (int i = 0; i < 100; ++i) {
    made.data += made_record(PERF_RECORD_SAMPLE, 2, words(10, i, 0) + std::string(60'000, 'x'));
  }
  auto input = open(made.file());
  auto file = test::memory_file("");
  {
    Output output{file.get(), input};
    unchanged(input, output);
  }
  const auto bytes = contents(file.get());
  EXPECT_GT(bytes.size(), std::size_t{1} << 20U);
  EXPECT_TRUE(
      std::holds_alternative<UnsupportedFile>(Input::open(test::memory_file(bytes), "unfinished")));
}

TEST(PerfDataOutput, FailsIfItCannotBeWritten) {
  MadePerfData made;
  made.events = {made_event(kSampleType, {10})};
  made.data = made_record(kFinishedRound, 0, "");
  const auto input = open(made.file());
  const base::UniqueFd full{::open("/dev/full", O_RDWR | O_CLOEXEC)};
  Output output{full.get(), input};
  EXPECT_THROW(output.finish({}), base::SystemError);
}

}  // namespace
}  // namespace pyinject::perfdata
