#include "perfdata/target_gaps.hpp"

#include "perfdata/output.hpp"
#include "perfdata/stack_counts_section.hpp"
#include "support/made_perf_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pyinject::perfdata {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TargetGaps parsed_gaps(std::string_view text) {
  return parse_target_gaps(std::as_bytes(std::span{text}));
}

TargetGaps gaps_of(Gap gap, pid_t targets, std::string_view cgroup = {}) {
  TargetGaps gaps;
  for (pid_t pid = 1; pid <= targets; ++pid) {
    gaps.add(gap, base::Pid{pid}, cgroup);
  }
  return gaps;
}

TEST(TargetGaps, NameTargetsAndRemedies) {
  EXPECT_THAT(sentences({}), IsEmpty());
  EXPECT_THAT(sentences(gaps_of(Gap::kFrozen, 1, "/sys/fs/cgroup/a b")),
              ElementsAre("pid 1: frozen by its cgroup /sys/fs/cgroup/a b (cgroup.freeze) at the "
                          "end: it has no samples until it goes on (echo 0 > /sys/fs/cgroup/a "
                          "b/cgroup.freeze)"));
  EXPECT_THAT(
      sentences(gaps_of(Gap::kFrozen, 2, "/a")),
      ElementsAre("pids 1, 2: frozen by their cgroups, such as /a (cgroup.freeze), at the "
                  "end: they have no samples until they go on (echo 0 > /a/cgroup.freeze)"));
  EXPECT_THAT(sentences(gaps_of(Gap::kStopped, 1)),
              ElementsAre("pid 1: stopped by job control (SIGSTOP or Ctrl-Z) at the end: it has no "
                          "samples until it goes on (kill -CONT 1)"));
  EXPECT_THAT(sentences(gaps_of(Gap::kStopped, 5)),
              ElementsAre("pids 1, 2, 3 and 2 more: stopped by job control (SIGSTOP or Ctrl-Z) at "
                          "the end: they have no samples until they go on (kill -CONT PID)"));
  EXPECT_THAT(sentences(gaps_of(Gap::kSwitchedOff, 1)),
              ElementsAre("pid 1: the program has switched the trampoline off "
                          "(sys.deactivate_stack_trampoline): the functions that it called after "
                          "that are missing, and no mark shows where: use --engine bpf"));
}

TEST(TargetGaps, AreTheSameAfterASection) {
  auto gaps = gaps_of(Gap::kFrozen, 4000, "/sys/fs/cgroup/a b");
  gaps.add(Gap::kSwitchedOff, base::Pid{7});
  EXPECT_EQ(parsed_gaps(to_section(StackCounts{}) + to_section(gaps)), gaps);
  EXPECT_EQ(parsed_gaps(to_section(TargetGaps{})), TargetGaps{});
}

TEST(TargetGaps, LeaveTheSectionReadable) {
  auto gaps = gaps_of(Gap::kFrozen, 4000, std::string(100000, '\n'));
  gaps.add(Gap::kStopped, base::Pid{7});
  gaps.add(Gap::kSwitchedOff, base::Pid{7});
  StackCounts counts;
  for (auto& count : counts.counts) {
    count = ~std::uint64_t{0};
  }
  const auto section = to_section(counts) + to_section(gaps);
  EXPECT_LT(section.size(), kMostStackCounts);
  EXPECT_EQ(parse_stack_counts(std::as_bytes(std::span{section})), counts) << "by older versions";
}

TEST(TargetGaps, SurviveInADamagedSection) {
  for (const auto* const text :
       {"", "stopped", "stopped 1", "stopped 1 ", "stopped 0 1", "stopped -1 1", "stopped 1 -1",
        "stopped 1 1,2", "stopped x 1", "complete 4\nof a later version 4"}) {
    EXPECT_EQ(parsed_gaps(text), TargetGaps{}) << text;
  }
  auto cut = parsed_gaps("stopped 9 1,x,3,4,5,6\nfrozen 1 2 /\x1b[a");
  EXPECT_THAT(cut.of(Gap::kStopped).pids, ElementsAre(base::Pid{1}, base::Pid{3}, base::Pid{4}));
  EXPECT_EQ(cut.of(Gap::kFrozen).cgroup, "/\\x1b[a");
}

// A recording without a sample has gaps, too.
TEST(TargetGaps, ReplaceThoseOfARewrittenFile) {
  test::MadePerfData made;
  made.events = {test::made_event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, {10})};
  made.data = test::made_record(PERF_RECORD_LOST, 0, test::words(1, 2));
  made.features = {{254, "complete 4\nstopped 1 12\n"}};
  const auto rewritten = [&made](const TargetGaps& gaps) {
    auto input = std::get<Input>(Input::open(made.file(), "made"));
    auto file = test::memory_file("");
    Output output{file.get(), input};
    while (const auto record = input.next()) {
      output.write(*record);
    }
    output.finish({}, {}, {}, gaps);
    return std::get<Input>(Input::open(std::move(file), "rewritten"));
  };
  const auto gaps = gaps_of(Gap::kFrozen, 1, "/a");
  EXPECT_EQ(rewritten(gaps).features().target_gaps(), gaps);
  EXPECT_EQ(rewritten({}).features().target_gaps().of(Gap::kStopped).count, 1U)
      << "those of the input";
  EXPECT_EQ(rewritten({}).features().stack_counts().of(StackKind::kComplete), 4U);
}

}  // namespace
}  // namespace pyinject::perfdata
