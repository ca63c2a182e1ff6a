#include "weave/sampled_stacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::uint32_t kRecorded = 10;
constexpr std::uint32_t kThread = 12;

sample::Stack stack(std::uint64_t time, std::vector<sample::Frame> frames,
                    std::uint32_t tid = kThread) {
  return {.pid = kRecorded, .tid = tid, .time = time, .frames = std::move(frames)};
}

sample::Stack at(SampledStacks& stacks, std::uint64_t time, std::uint32_t tid = kThread) {
  return stacks.at({.pid = kRecorded, .tid = tid, .time = time});
}

// The code of its only frame; 0: no such stack.
std::uint64_t code_at(SampledStacks& stacks, std::uint64_t time, std::uint32_t tid = kThread) {
  const auto found = at(stacks, time, tid);
  return found.frames.size() == 1 ? found.frames.front().code : 0;
}

TEST(SampledStacks, GivesWhatItWasGiven) {
  SampledStacks stacks;
  EXPECT_TRUE(stacks.empty());
  const std::vector<sample::Frame> frames{{.code = 3, .line = 31},
                                          {.code = 2, .line = 21, .outermost = true},
                                          {.code = 1, .line = 11, .outermost = true}};
  stacks.add({.pid = kRecorded,
              .tid = kThread,
              .time = 100,
              .frames = frames,
              .truncated = true,
              .gil = sample::Gil::kWaitedFor,
              .task = "a"});
  EXPECT_FALSE(stacks.empty());
  const auto found = at(stacks, 100);
  EXPECT_EQ(found.frames, frames);
  EXPECT_TRUE(found.whole);
  EXPECT_TRUE(found.truncated);
  EXPECT_EQ(found.gil, sample::Gil::kWaitedFor);
  EXPECT_EQ(found.task, "a");
}

TEST(SampledStacks, KnowsWhenItWasFed) {
  SampledStacks stacks;
  EXPECT_GT(stacks.first(), stacks.last());
  stacks.add(stack(100, {}));
  stacks.add(stack(90, {}, kThread + 1));
  EXPECT_EQ(stacks.first(), 90U);
  EXPECT_EQ(stacks.last(), 100U);
}

TEST(SampledStacks, AThreadWithoutPythonFramesIsKnown) {
  SampledStacks stacks;
  stacks.add({.pid = kRecorded, .tid = kThread, .time = 100, .gil = sample::Gil::kNone});
  EXPECT_TRUE(at(stacks, 100).whole);
  EXPECT_THAT(at(stacks, 100).frames, IsEmpty());
  EXPECT_FALSE(at(stacks, 101).whole);
  EXPECT_EQ(stacks.matches().all, 2U);
  EXPECT_EQ(stacks.matches().no_frames, 2U);
  EXPECT_EQ(stacks.matches().with_frames, 0U);
  stacks.add(stack(200, {{.code = 1, .outermost = true}}));
  EXPECT_EQ(code_at(stacks, 200), 1U);
  auto other = stack(300, {});
  other.python_thread = false;
  stacks.add(other);
  stacks.add(stack(400, {}));
  EXPECT_EQ(code_at(stacks, 300), 0U);
  EXPECT_EQ(stacks.matches().all, 4U);
  EXPECT_EQ(stacks.matches().with_frames, 1U);
  EXPECT_EQ(stacks.matches().no_frames, 2U);
  EXPECT_EQ(stacks.matches().no_state, 1U) << "one of two has no sample";
}

TEST(SampledStacks, OnlyTheSameThreadAndTimeFit) {
  SampledStacks stacks;
  stacks.add(stack(100, {{.code = 1, .outermost = true}}));
  EXPECT_EQ(code_at(stacks, 101), 0U);
  EXPECT_EQ(code_at(stacks, 99), 0U);
  EXPECT_EQ(code_at(stacks, 100, kThread + 1), 0U);
  EXPECT_FALSE(stacks.at({.pid = kRecorded + 1, .tid = kThread, .time = 100}).whole);
  EXPECT_EQ(code_at(stacks, 100), 1U);
  EXPECT_EQ(code_at(stacks, 100), 1U) << "two events at the same time";
  EXPECT_EQ(stacks.matches().all, 2U);
}

TEST(SampledStacks, TheOrderOfTheRecordsDoesNotMatter) {
  SampledStacks stacks;
  for (const std::uint64_t time : {300U, 100U, 200U}) {
    stacks.add(stack(time, {{.code = time, .outermost = true}}));
  }
  for (const std::uint64_t time : {100U, 200U, 300U}) {
    EXPECT_EQ(code_at(stacks, time), time);
  }
}

TEST(SampledStacks, TheNearestRecordIsTaken) {
  SampledStacks stacks{SampledStacks::Matching::kNearest};
  stacks.add(stack(100'000, {{.code = 1, .outermost = true}}));
  stacks.add(stack(110'000, {{.code = 2, .outermost = true}}));
  stacks.add(stack(190'000, {{.code = 3, .outermost = true}}));
  EXPECT_EQ(code_at(stacks, 108'000), 2U);
  EXPECT_EQ(code_at(stacks, 107'000), 1U) << "each record belongs to one sample";
  EXPECT_EQ(code_at(stacks, 106'000), 0U);
  EXPECT_EQ(code_at(stacks, 164'000), 0U) << "too long before the record";
  EXPECT_EQ(code_at(stacks, 2'191'000), 0U) << "too long after the record";
  EXPECT_EQ(code_at(stacks, 2'189'000), 3U);
  EXPECT_EQ(code_at(stacks, 10), 0U);
}

TEST(SampledStacks, TheNearestIsFoundNearTheBeginningOfTime) {
  SampledStacks stacks{SampledStacks::Matching::kNearest};
  stacks.add(stack(5, {{.code = 1, .outermost = true}}));
  EXPECT_EQ(code_at(stacks, 10), 1U);
}

TEST(SampledStacks, EqualStacksAreKeptOnce) {
  SampledStacks stacks;
  std::vector<sample::Frame> deep(500, {.code = 7, .line = 3});
  deep.back().outermost = true;
  stacks.add(stack(1, deep));
  const auto one = stacks.bytes();
  constexpr std::size_t kMany = 2000;
  for (std::uint64_t time = 2; time <= kMany; ++time) {
    deep.front().line = static_cast<std::uint32_t>(time % 5);
    stacks.add(stack(time, deep));
  }
  EXPECT_EQ(stacks.records(), kMany);
  EXPECT_LT(stacks.bytes() - one, kMany * 48) << "a vector may have twice the capacity";
  EXPECT_EQ(at(stacks, kMany).frames, deep);
}

TEST(SampledStacks, HasNamesWithTheirLastLines) {
  SampledStacks stacks;
  stacks.add(stack(1, {{.code = 1, .line = 20}, {.code = 2, .line = 5}}));
  stacks.name({.number = 1, .qualname = "f", .file = "f.py", .first_line = 10});
  stacks.name({.number = 3, .qualname = "g", .file = "g.py", .first_line = 2});
  stacks.add(stack(2, {{.code = 1, .line = 30}}));
  stacks.add(stack(3, {{.code = 1, .line = 15}}));
  std::map<std::string, std::uint32_t> last_lines;
  stacks.each_name([&](const sample::Code& name, std::uint32_t last) {
    last_lines.emplace(name.qualname, last);
  });
  EXPECT_THAT(last_lines, ElementsAre(Pair("f", 30U), Pair("g", 0U)));
  ASSERT_NE(stacks.name(kRecorded, 1), nullptr);
  EXPECT_EQ(stacks.name(kRecorded, 1)->first_line, 10U);
  EXPECT_EQ(stacks.name(kRecorded + 1, 1), stacks.name(kRecorded, 1))
      << "codes do not depend on the process";
  EXPECT_EQ(stacks.name(kRecorded, 2), nullptr) << "it has no name yet";
  EXPECT_EQ(stacks.name(kRecorded, 4), nullptr);
}

// Stacks that differ in the outermost frame share nothing.
TEST(SampledStacks, EmptiesStacksOfAProcessBeyondItsShare) {
  constexpr std::uint32_t kGreedy = 99;
  const auto budget = std::make_shared<base::RecordingBudget>();
  budget->bytes = base::Budget{1'000'000};
  SampledStacks stacks{SampledStacks::Matching::kExact, budget};
  for (std::uint64_t time = 1; time <= 1000; ++time) {
    std::vector<sample::Frame> frames(100, sample::Frame{.code = 1});
    frames.back().code = time;
    stacks.add({.pid = kGreedy, .tid = kGreedy, .time = time, .frames = std::move(frames)});
  }
  stacks.add(stack(1000, {{.code = 5}}));
  EXPECT_LE(budget->bytes.held_by(kGreedy), 200'000U);
  const auto dropped = stacks.dropped();
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped.front().pid, kGreedy);
  EXPECT_EQ(dropped.front().limit, Limit::kPythonStacks);
  EXPECT_GT(dropped.front().count, 900U);
  EXPECT_EQ(stacks.records(), 1001U);
  const auto last = stacks.at({.pid = kGreedy, .tid = kGreedy, .time = 1000});
  EXPECT_TRUE(last.whole);
  EXPECT_TRUE(last.truncated);
  EXPECT_THAT(last.frames, IsEmpty());
  EXPECT_EQ(code_at(stacks, 1000), 5U);
}

TEST(SampledStacks, DropsNativeStacksBeyondAProcesssShare) {
  constexpr std::uint32_t kGreedy = 99;
  const auto budget = std::make_shared<base::RecordingBudget>();
  budget->bytes = base::Budget{10'000};
  SampledStacks stacks{SampledStacks::Matching::kExact, budget};
  const std::vector<std::uint64_t> chain(100, 0x1000);
  stacks.add({.pid = kGreedy, .tid = kGreedy, .time = 1, .added = false, .native = chain});
  const auto dropped = stacks.dropped();
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped.front().limit, Limit::kNativeStacks);
  EXPECT_THAT(stacks.native_at({.pid = kGreedy, .tid = kGreedy, .time = 1}).chain, IsEmpty());
}

TEST(SampledStacks, CountsSamplesOfObservedProcessesOnly) {
  SampledStacks stacks;
  stacks.add(stack(1, {{.code = 5}}));
  stacks.add({.pid = kRecorded + 1, .tid = kThread + 1, .time = 1, .added = false});
  (void)at(stacks, 1);
  EXPECT_TRUE(stacks.at({.pid = kRecorded + 1, .tid = kThread + 1, .time = 1}).whole);
  EXPECT_EQ(stacks.matches().all, 1U);
}

}  // namespace
}  // namespace pyinject::weave
