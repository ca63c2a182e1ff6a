#include "recorder/options.hpp"

#include "recorder/attributes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::recorder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::optional<std::uint64_t> no_tracepoint(std::string_view /*name*/) { return std::nullopt; }

Options options_of(std::vector<std::string> words) {
  words.insert(words.end(), {"-p", "7"});
  auto parsed = parse_options(words, no_tracepoint);
  const auto* const why = std::get_if<std::string>(&parsed);
  EXPECT_EQ(why, nullptr) << *why;
  return why == nullptr ? std::get<Options>(parsed) : Options{};
}

perf_event_attr attributes_of(const std::vector<std::string>& words) {
  const auto options = options_of(words);
  return sampling_attributes(options.events.empty() ? default_event() : options.events.front(),
                             options, 50'000);
}

TEST(RecorderOptions, AreThoseThatTheToolGives) {
  const auto options = options_of({"-D", "-1", "--control", "fd:3,4", "-o", "a b.data", "-k",
                                   "mono", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-m",
                                   "1M", "-F", "99", "-B", "-i", "-z"});
  EXPECT_TRUE(options.begins_disabled);
  EXPECT_EQ(options.commands, 3);
  EXPECT_EQ(options.answers, 4);
  EXPECT_EQ(options.output, "a b.data");
  EXPECT_EQ(options.clock, CLOCK_MONOTONIC);
  EXPECT_EQ(options.chains, Options::Chains::kCopiedStacks);
  EXPECT_EQ(options.stack_bytes, 16384U);
  EXPECT_EQ(options.ring_bytes, std::size_t{1} << 20U);
  EXPECT_EQ(options.frequency, 99U);
  EXPECT_FALSE(options.build_ids);
  EXPECT_FALSE(options.inherit);
  EXPECT_EQ(options.compression, 1);
  EXPECT_EQ(options_of({"--compression-level=30"}).compression, 22);
  EXPECT_THAT(options.pids, ElementsAre(7));
}

TEST(RecorderOptions, OthersAreRefusedByName) {
  for (const auto& [words, name] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--filter", "x"}, "--filter x"},
           {{"-j", "any"}, "-j any"},
           {{"--threads"}, "--threads"},
           {{"--kcore"}, "--kcore"},
           {{"--data"}, "--data"},
           {{"-t", "7"}, "-t 7"},
           {{"--overwrite"}, "--overwrite"},
           {{"--call-graph", "lbr"}, "--call-graph lbr"},
           {{"-o", "-"}, "-o -"},
           {{"-e", "cpu/event=0x3c/"}, "-e cpu/event=0x3c/"}}) {
    const auto why = refusal(words);
    ASSERT_TRUE(why.has_value()) << name;
    EXPECT_THAT(*why, testing::StartsWith(name + " needs perf: apt install linux-perf"));
  }
  EXPECT_EQ(refusal(std::vector<std::string>{"-F", "99", "-g", "-a"}), std::nullopt);
  EXPECT_EQ(refusal(std::vector<std::string>{"-F", "often"}), "-F often: its value is wrong");
}

TEST(RecorderOptions, SetTheRateAsPerfDoes) {
  EXPECT_EQ(attributes_of({}).freq, 1U);
  EXPECT_EQ(attributes_of({}).sample_freq, kDefaultFrequency);
  EXPECT_EQ(attributes_of({"-F", "99"}).sample_freq, 99U);
  EXPECT_EQ(attributes_of({"-F", "max"}).sample_freq, 50'000U);
  EXPECT_EQ(attributes_of({"-F", "900000"}).sample_freq, 50'000U);
  EXPECT_EQ(attributes_of({"-c", "17"}).freq, 0U);
  EXPECT_EQ(attributes_of({"-c", "17"}).sample_period, 17U);
  EXPECT_EQ(attributes_of({"-c", "17"}).sample_type & PERF_SAMPLE_PERIOD, 0U);
  EXPECT_NE(attributes_of({"-c", "17", "--period"}).sample_type & PERF_SAMPLE_PERIOD, 0U);
  EXPECT_NE(attributes_of({"-F", "17"}).sample_type & PERF_SAMPLE_PERIOD, 0U);
  const auto own = attributes_of({"-F", "99", "-e", "context-switches/period=1/"});
  EXPECT_EQ(own.freq, 0U);
  EXPECT_EQ(own.sample_period, 1U);
}

TEST(RecorderOptions, SetTheCallchains) {
  EXPECT_EQ(attributes_of({}).sample_type & PERF_SAMPLE_CALLCHAIN, 0U);
  EXPECT_NE(attributes_of({"-g"}).sample_type & PERF_SAMPLE_CALLCHAIN, 0U);
  const auto kernel = attributes_of({"-g", "--kernel-callchains"});
  EXPECT_EQ(kernel.exclude_callchain_user, 1U);
  const auto copied = attributes_of({"--call-graph", "dwarf,8190"});
  EXPECT_EQ(copied.sample_stack_user, 8192U);
  EXPECT_NE(copied.sample_regs_user, 0U);
  EXPECT_EQ(
      attributes_of({"-g", "-e", "cpu-clock/call-graph=no/"}).sample_type & PERF_SAMPLE_CALLCHAIN,
      0U);
}

TEST(RecorderOptions, HaveListsOfProcessors) {
  EXPECT_THAT(parse_processors("0-2,5"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_processors("3,0-1,1\n"), ElementsAre(0, 1, 3));
  for (const auto* const wrong : {"", "-", "2-1", "x", "0-99999", "1,,2"}) {
    EXPECT_TRUE(parse_processors(wrong).empty()) << wrong;
  }
}

}  // namespace
}  // namespace pyinject::recorder
