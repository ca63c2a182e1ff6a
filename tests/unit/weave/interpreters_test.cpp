// The facts about a process's Python hold while it runs there and in its forked children.
#include "unit/weave/made_process.hpp"
#include "weave/frame_history.hpp"
#include "weave/synthetic_names.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kSecond = 8;
constexpr std::uint32_t kThird = 9;

class InterpreterHistory : public MadeProcess {
 protected:
  void sampled(std::uint64_t time, std::uint32_t pid) {
    sample(time, "cEc", kClock, pid);
    record(time, python({"a"}), pid);
  }
};

TEST_F(InterpreterHistory, AProgramThatAPythonBecomesIsNone) {
  context_.interpreters[kPid][0].seen = 50;
  exec(150, kPid);
  sample(100, "cEc");
  sample(200, "cEc");
  EXPECT_THAT(woven(), ElementsAre("cEc", "c")) << "the mappings of its old program are gone";
  EXPECT_EQ(summary_.without_record, 1U) << "the first sample";
}

TEST_F(InterpreterHistory, HoldsAllTheTimeIfItIsNotDated) {
  exec(150, kPid);
  sample(200, "cEc");
  (void)woven();
  EXPECT_EQ(summary_.without_record, 1U);
}

// Each has its own facts: the second was built without frame pointers.
TEST_F(InterpreterHistory, OneNumberCanHaveTwoPythons) {
  auto& all = context_.interpreters[kPid];
  all[0].seen = 50;
  all.push_back(all[0]);
  all[1].seen = 160;
  all[1].frame_pointers = false;
  exec(150, kPid);
  map(kCode, kCodeSize, "/usr/bin/python");
  sampled(100, kPid);
  sampled(200, kPid);
  EXPECT_THAT(woven(), ElementsAre("cEac", "ca"));
}

// Another processor has recorded it, and its buffer was read later.
TEST_F(InterpreterHistory, HasNamesAfterAnExecThatFollowsTheMappings) {
  context_.interpreters[kPid][0].seen = 160;
  map(kCode, kCodeSize, "/usr/bin/python", kPid, 160);
  exec(150, kPid);
  sampled(200, kPid);
  weave();
  std::uint64_t named = 0;
  auto result = output();
  while (const auto record = result.next()) {
    const auto mapping = perfdata::parse_mapping(*record);
    if (mapping && mapping->size == SyntheticNames::kSize) {
      named = std::max(named, result.time_of(*record).value_or(0));
    }
  }
  EXPECT_EQ(named, 150U);
}

TEST_F(InterpreterHistory, AnotherProcessOfTheSameNumberIsNone) {
  context_.interpreters[kPid][0].seen = 50;
  fork(150, 1, kPid);
  sample(200, "ccc");
  (void)woven();
  EXPECT_EQ(summary_.without_record, 0U);
}

TEST_F(InterpreterHistory, SkipsSamplesFromBeforeTheRecording) {
  options_.begun_at = 200;
  sampled(199, kPid);
  sampled(200, kPid);
  EXPECT_THAT(woven(), ElementsAre("cEac"));
  EXPECT_EQ(summary_.samples, 1U);
}

TEST_F(InterpreterHistory, ForkInheritsTheParents) {
  fork(90, kPid, kSecond);
  sampled(100, kSecond);
  EXPECT_THAT(woven(), ElementsAre("cEac"));
}

// As in a directory of perf (--threads), where each processor has its own file.
TEST_F(InterpreterHistory, AnExecEndsTheParentsStackInAnyOrder) {
  FrameHistory history;
  history.begin(kPid, kPid, python({"a"}).frames, true);
  history.name(kPid, {.number = 'a', .qualname = "a", .file = "f.py", .first_line = 10});
  context_.stacks = &history;
  context_.interpreters[kSecond] = context_.interpreters[kPid];
  context_.interpreters[kSecond][0].seen = 99;
  exec(95, kSecond);
  map(kCode, kCodeSize, "/usr/bin/python", kSecond, 96);
  sample(100, "cEc", kClock, kSecond);
  fork(90, kPid, kSecond);
  sample(92, "cEc", kClock, kSecond);
  EXPECT_THAT(woven(), ElementsAre("cEc[unnamed Python functions]", "cEac"));
}

// The process in between has exec'ed another program by then.
TEST_F(InterpreterHistory, AGrandchildKeepsIt) {
  context_.interpreters[kPid][0].seen = 50;
  fork(90, kPid, kSecond);
  fork(91, kSecond, kThird);
  exec(95, kSecond);
  sampled(100, kThird);
  sample(100, "ccc", kClock, kSecond);
  EXPECT_THAT(woven(), ElementsAre("cEac", "c"));
  EXPECT_EQ(summary_.without_record, 0U);
}

}  // namespace
}  // namespace pyinject::weave
