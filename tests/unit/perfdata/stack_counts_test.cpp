#include "perfdata/stack_counts_section.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string_view>

namespace pyinject::perfdata {
namespace {

StackCounts made(std::uint64_t complete, StackKind other, std::uint64_t count) {
  StackCounts counts;
  counts.counts.at(static_cast<std::size_t>(StackKind::kComplete)) = complete;
  counts.counts.at(static_cast<std::size_t>(other)) = count;
  return counts;
}

StackCounts parsed(std::string_view text) {
  return parse_stack_counts(std::as_bytes(std::span{text}));
}

TEST(StackCounts, AreTheSameAfterASection) {
  StackCounts counts;
  for (std::size_t i = 0; i < kStackKinds; ++i) {
    counts.counts.at(i) = 7 * i + 1;
  }
  EXPECT_EQ(parsed(to_section(counts)), counts);
}

TEST(StackCounts, SurviveInADamagedSection) {
  EXPECT_EQ(parsed(""), StackCounts{});
  EXPECT_EQ(parsed("complete"), StackCounts{});
  EXPECT_EQ(parsed("complete -1\ncut 99999999999999999999\n"), StackCounts{});
  EXPECT_EQ(parsed("of a later version 4\n\ncut 3\nno"), made(0, StackKind::kCut, 3));
  const auto most = parsed("complete 18446744073709551615\nunread 18446744073709551615\n");
  EXPECT_EQ(most.all(), ~std::uint64_t{0});
  EXPECT_NE(incompleteness(most), "");
}

TEST(StackCounts, SayWhatLacksIfItIsMoreThanOnePercent) {
  EXPECT_EQ(incompleteness({}), "");
  EXPECT_EQ(incompleteness(made(99, StackKind::kUnread, 1)), "");
  EXPECT_EQ(incompleteness(made(0, StackKind::kCut, 2), false),
            "100.0 % of the 2 samples lack Python functions: 2 cut at the root (more than 512 "
            "functions, or memory that was not there)");
  EXPECT_EQ(incompleteness(made(81, StackKind::kLaterProgram, 486)),
            "85.7 % of the 567 samples lack Python functions: 486 of a program that was executed "
            "later (record it by itself)");
  EXPECT_EQ(incompleteness(made(0, StackKind::kCut, 1234)),
            "100.0 % of the 1,234 samples lack Python functions: 1,234 cut at the root (the marks "
            "there say why)");
}

// These have no Python functions that could be missing.
TEST(StackCounts, SamplesWithoutPythonAreNotALack) {
  EXPECT_EQ(incompleteness(made(1, StackKind::kNoPython, 1000)), "");
  EXPECT_EQ(incompleteness(made(1, StackKind::kOtherProgram, 1000)), "");
  EXPECT_EQ(incompleteness(made(0, StackKind::kOtherProgram, 1000)),
            "100.0 % of the 1,000 samples lack Python functions: 1,000 of other programs");
}

}  // namespace
}  // namespace pyinject::perfdata
