// Every possible layout of a sample.
#include "perfdata/record_writer.hpp"
#include "perfdata/sample_parser.hpp"
#include "support/made_perf_data.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace pyinject::perfdata {
namespace {

using test::as_record;
using test::as_text;
using test::made_dwarf_event;
using test::made_event;
using test::made_record;
using test::packed;
using test::words;

constexpr std::uint64_t kBranchHwIndex = 1U << 17U;
constexpr std::uint64_t kBranchCounters = 1U << 19U;

std::string sample(const std::string& payload) {
  return made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload);
}

// The fields that --call-graph dwarf adds: registers 6 to 8 and 64 bytes of stack, FILLED of which
// are valid.
std::string stacks(std::uint64_t filled) {
  return words(PERF_SAMPLE_REGS_ABI_64, 60, 70, 80) + words(64) + std::string(64, 's') +
         words(filled);
}

TEST(PerfDataSamples, HaveTheirFieldsInOrder) {
  const auto event =
      made_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN);
  const auto front = words(1, 0x1000) + packed(2U, 3U) + words(4, 5, 6, 7, 8, 9);
  const auto bytes = sample(front + words(2, PERF_CONTEXT_USER, 0x1000));
  Sample out;
  ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
  EXPECT_EQ(out.event, &event);
  EXPECT_EQ(out.misc, PERF_RECORD_MISC_USER);
  EXPECT_EQ(out.ip, 0x1000U);
  EXPECT_EQ(out.pid, 2U);
  EXPECT_EQ(out.tid, 3U);
  EXPECT_EQ(out.time, 4U);
  EXPECT_EQ(as_text(out.before_chain), front);
  EXPECT_EQ(out.chain, (std::vector<std::uint64_t>{PERF_CONTEXT_USER, 0x1000}));
  EXPECT_TRUE(out.between.empty() && out.behind.empty() && out.stack.empty());
  EXPECT_EQ(out.register_abi, 0U);
}

TEST(PerfDataSamples, HaveUserStacksAndAreWrittenWithoutThem) {
  const auto event = made_dwarf_event(PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN |
                                      PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_RAW);
  const auto raw = packed(12U) + "twelve bytes";
  const auto bytes = sample(words(0x1000, 0) + raw + stacks(40) + words(0xda7a));
  Sample out;
  ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
  EXPECT_EQ(out.register_abi, PERF_SAMPLE_REGS_ABI_64);
  EXPECT_EQ(out.register_mask, 0x1c0U);
  EXPECT_EQ(out.registers[6], 60U);
  EXPECT_EQ(out.registers[7], 70U);
  EXPECT_EQ(out.registers[8], 80U);
  EXPECT_EQ(out.stack_asked, 64U);
  EXPECT_EQ(as_text(out.stack), std::string(40, 's'));
  EXPECT_EQ(as_text(out.between), raw);
  EXPECT_EQ(as_text(out.behind), words(0xda7a));

  // The sample as written: without registers and stack, with the new chain.
  std::vector<std::byte> record;
  EXPECT_TRUE(make_sample(out, std::vector<std::uint64_t>{1, 2, 3}, record));
  EXPECT_EQ(as_text(record), sample(words(0x1000, 3, 1, 2, 3) + raw + words(0xda7a)));
}

TEST(PerfDataSamples, AKernelThreadHasNoUserStack) {
  const auto event = made_dwarf_event(PERF_SAMPLE_IP);
  Sample out;
  out.register_mask = 1;
  const auto bytes = sample(words(0x1000, PERF_SAMPLE_REGS_ABI_NONE, 0));
  ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
  EXPECT_EQ(out.register_abi, 0U);
  EXPECT_EQ(out.register_mask, 0U);
  EXPECT_EQ(out.stack_asked, 0U);
  EXPECT_TRUE(out.stack.empty());
}

TEST(PerfDataSamples, RegistersWithoutStacksStay) {
  auto event = made_event(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_CGROUP);
  event.attr.sample_regs_user = 0x101;
  const auto rest = words(PERF_SAMPLE_REGS_ABI_64, 11, 22, 33);
  const auto bytes = sample(words(1, 7) + rest);
  Sample out;
  ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
  EXPECT_EQ(out.registers[8], 22U);
  EXPECT_EQ(as_text(out.behind), rest);
  std::vector<std::byte> record;
  EXPECT_TRUE(make_sample(out, out.chain, record));
  EXPECT_EQ(as_text(record), bytes);
}

// perf_event.h: struct read_format.
TEST(PerfDataSamples, HaveCountersInAllFormats) {
  for (std::uint64_t format = 0; format < PERF_FORMAT_MAX; ++format) {
    auto event = made_event(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN);
    event.attr.read_format = format;
    const auto bits = [&](std::uint64_t of) { return std::popcount(format & of); };
    const int times = bits(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    const int value = 1 + bits(PERF_FORMAT_ID | PERF_FORMAT_LOST);
    const bool group = (format & PERF_FORMAT_GROUP) != 0;
    std::string counters = group ? words(3) : "";
    for (int i = 0; i < times + value * (group ? 3 : 1); ++i) {
      counters += words(100 + i);
    }
    const auto bytes = sample(counters + words(1, 0xabc));
    Sample out;
    ASSERT_TRUE(parse_sample(event, as_record(bytes), out)) << format;
    EXPECT_EQ(as_text(out.before_chain), counters) << format;
    EXPECT_EQ(out.chain, std::vector<std::uint64_t>{0xabc}) << format;
  }
}

TEST(PerfDataSamples, HaveBranches) {
  const auto branches = [](std::uint64_t type, const std::string& bytes) {
    auto event = made_dwarf_event(PERF_SAMPLE_BRANCH_STACK);
    event.attr.branch_sample_type = type;
    const auto record = sample(bytes + stacks(8));
    Sample out;
    return parse_sample(event, as_record(record), out) && as_text(out.between) == bytes &&
           out.registers[6] == 60 && out.stack.size() == 8;
  };
  EXPECT_TRUE(branches(0, words(2, 1, 2, 3, 4, 5, 6)));
  EXPECT_TRUE(branches(kBranchHwIndex, words(1, 99, 1, 2, 3)));
  EXPECT_TRUE(branches(kBranchCounters, words(2, 1, 2, 3, 4, 5, 6, 7, 8)));
  EXPECT_TRUE(branches(kBranchCounters | kBranchHwIndex, words(1, 99, 1, 2, 3, 4)));
  EXPECT_TRUE(branches(kBranchHwIndex, words(0, 99)));
  // The kernel writes this if it has none.
  EXPECT_TRUE(branches(kBranchHwIndex, words(0)));
}

TEST(PerfDataSamples, TheLengthTellsWhetherThereIsAnHwIndex) {
  auto event = made_event(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT);
  event.attr.branch_sample_type = kBranchHwIndex;
  for (const auto& branches : {words(0, 99), words(0)}) {
    const auto bytes = sample(branches + words(5));
    Sample out;
    ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
    EXPECT_EQ(as_text(out.between), branches);
    EXPECT_EQ(as_text(out.behind), words(5));
  }
}

TEST(PerfDataSamples, KeepFieldsBehindTheStack) {
  auto event =
      made_dwarf_event(PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
                       PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
                       PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE);
  event.attr.sample_regs_intr = 0x7;
  Sample out;
  for (const auto& registers :
       {words(PERF_SAMPLE_REGS_ABI_64, 1, 2, 3), words(PERF_SAMPLE_REGS_ABI_NONE)}) {
    const auto behind = words(1, 2, 3) + registers + words(4, 5, 6, 7);
    const auto bytes = sample(stacks(64) + behind);
    ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
    EXPECT_EQ(as_text(out.behind), behind);
    const auto cut = sample(stacks(64) + behind.substr(8));
    EXPECT_FALSE(parse_sample(event, as_record(cut), out));
  }
}

TEST(PerfDataSamples, DamagedOnesAreNone) {
  auto event = made_dwarf_event(PERF_SAMPLE_IP | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
                                PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT);
  event.attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  Sample out;
  const auto parse = [&](const std::string& payload) {
    const auto bytes = sample(payload);
    return parse_sample(event, as_record(bytes), out);
  };
  const auto whole = [](std::uint64_t counters, std::uint64_t addresses, std::uint32_t raw,
                        std::uint64_t branches, const std::string& stack) {
    return words(1, counters, 7, 7) + words(addresses, 9) + packed(raw, 0U) +
           words(branches, 1, 2, 3) + stack + words(5);
  };
  const auto good = whole(1, 1, 4, 1, stacks(64));
  ASSERT_TRUE(parse(good));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse(good.substr(0, size))) << size;
  }
  for (const std::uint64_t many :
       {std::uint64_t{1000}, std::uint64_t{1} << 60U, std::uint64_t{1} << 61U, ~std::uint64_t{0}}) {
    EXPECT_FALSE(parse(whole(many, 1, 4, 1, stacks(64)))) << many;
    EXPECT_FALSE(parse(whole(1, many, 4, 1, stacks(64)))) << many;
    EXPECT_FALSE(parse(whole(1, 1, static_cast<std::uint32_t>(many | 0x8000), 1, stacks(64))));
    EXPECT_FALSE(parse(whole(1, 1, 4, many, stacks(64)))) << many;
    EXPECT_FALSE(parse(whole(1, 1, 4, 1, words(2, 1, 2, 3, many)))) << many;
  }
  EXPECT_FALSE(parse(whole(1, 1, 4, 1, stacks(65)))) << "more of the stack filled than copied";
  EXPECT_FALSE(parse(whole(1, 1, 4, 1, words(3, 1, 2, 3, 0)))) << "an unknown ABI";
  EXPECT_FALSE(parse_sample(event, {.type = PERF_RECORD_SAMPLE, .misc = 0, .bytes = {}}, out));
  EXPECT_FALSE(parse_sample(event, as_record(made_record(PERF_RECORD_LOST, 0, good)), out));
}

TEST(PerfDataSamples, TheRootOfALongChainIsCut) {
  const auto event = made_event(PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_WEIGHT);
  const auto bytes = sample(words(1, 0, 2));
  Sample out;
  ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
  const std::size_t most = (65528 - sizeof(perf_event_header)) / 8 - 3;
  std::vector<std::uint64_t> chain(most, 7);
  std::vector<std::byte> record;
  EXPECT_TRUE(make_sample(out, chain, record));
  EXPECT_EQ(record.size(), 65528U);
  chain.push_back(8);
  EXPECT_FALSE(make_sample(out, chain, record));
  EXPECT_EQ(record.size(), 65528U);
  const auto text = as_text(record);
  Sample again;
  ASSERT_TRUE(parse_sample(event, as_record(text), again));
  EXPECT_EQ(again.chain, std::vector<std::uint64_t>(most, 7));
  EXPECT_EQ(as_text(again.behind), words(2));
}

TEST(PerfDataSamples, GetNoCallchainIfTheyHaveNone) {
  const auto event = made_dwarf_event(PERF_SAMPLE_IP);
  const auto bytes = sample(words(1) + stacks(8));
  Sample out;
  ASSERT_TRUE(parse_sample(event, as_record(bytes), out));
  std::vector<std::byte> record;
  EXPECT_TRUE(make_sample(out, std::vector<std::uint64_t>{1, 2}, record));
  EXPECT_EQ(as_text(record), sample(words(1)));
}

TEST(PerfDataSamples, MadeOnesAreReadAsTheyWereMade) {
  constexpr std::uint64_t kAll = (1U << 20U) - 1;  // up to PERF_SAMPLE_PHYS_ADDR
  const auto without = [](std::uint64_t bits) { return kAll & ~bits; };
  for (const auto type : {without(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_REGS_USER),
                          without(PERF_SAMPLE_STACK_USER), std::uint64_t{PERF_SAMPLE_TID}}) {
    auto event = made_event(type | PERF_SAMPLE_CALLCHAIN);
    event.ids = {77};
    event.attr.branch_sample_type = kBranchHwIndex;
    const MadeSample made{
        event, {.misc = PERF_RECORD_MISC_KERNEL, .ip = 5, .time = 9, .pid = 2, .tid = 3}};
    std::vector<std::byte> bytes;
    const std::vector<std::uint64_t> chain{PERF_CONTEXT_USER, 0x1000};
    EXPECT_TRUE(make_sample(made.get(), chain, bytes, 4711));
    event.attr.sample_type |= PERF_SAMPLE_PERIOD;
    const Record record{
        .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_KERNEL, .bytes = bytes};
    Sample out;
    ASSERT_TRUE(parse_sample(event, record, out)) << type;
    EXPECT_EQ(out.chain, chain);
    EXPECT_EQ(out.pid, 2U);
    EXPECT_EQ(out.tid, 3U);
    EXPECT_EQ(out.time, event.samples(PERF_SAMPLE_TIME) ? 9U : 0U);
    EXPECT_EQ(out.ip, event.samples(PERF_SAMPLE_IP) ? 5U : 0U);
  }
}

}  // namespace
}  // namespace pyinject::perfdata
