#include "record/verbs/cpu_budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::record {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Optional;

constexpr double kBudget = 0.01;

TEST(CpuBudget, FrequencyFollowsTheUse) {
  EXPECT_EQ(next_frequency(0.02, kBudget, 100, 100), 40U) << "80 % of the budget";
  EXPECT_EQ(next_frequency(0.5, kBudget, 100, 100), 25U) << "not below a quarter at once";
  EXPECT_EQ(next_frequency(0.0101, kBudget, 12, 100), 10U) << "a tenth is the lowest";
  EXPECT_EQ(next_frequency(0.5, kBudget, 10, 100), 10U);
  EXPECT_EQ(next_frequency(0.0101, kBudget, 2, 5), 1U);
  EXPECT_EQ(next_frequency(0.5, kBudget, 1, 5), 1U);
  EXPECT_EQ(next_frequency(0.01, kBudget, 50, 100), 50U) << "within the budget";
  EXPECT_EQ(next_frequency(0.0051, kBudget, 50, 100), 50U);
  EXPECT_EQ(next_frequency(0.005, kBudget, 50, 100), 80U);
  EXPECT_EQ(next_frequency(0, kBudget, 20, 100), 40U) << "twice at most";
  EXPECT_EQ(next_frequency(0, kBudget, 1, 100), 2U);
  EXPECT_EQ(next_frequency(0, kBudget, 90, 100), 100U);
  EXPECT_EQ(next_frequency(0.001, kBudget, 100, 100), 100U);
}

// A cost with a fixed part: the frequency settles within the budget if it can, and stays there.
TEST(CpuBudget, SettlesForAnyCost) {
  for (const double fixed : {0.0, 0.002, 0.009, 0.02}) {
    for (const double each : {1e-6, 1e-5, 1e-4}) {
      std::uint64_t frequency = 999;
      const auto use = [&] { return fixed + each * static_cast<double>(frequency); };
      for (int i = 0; i < 20; ++i) {
        frequency = next_frequency(use(), kBudget, frequency, 999);
      }
      const bool can = fixed + each * static_cast<double>(lowest_frequency(999)) <= kBudget;
      EXPECT_EQ(use() <= kBudget, can) << fixed << " " << each;
      const auto settled = frequency;
      for (int i = 0; i < 20; ++i) {
        frequency = next_frequency(use(), kBudget, frequency, 999);
        EXPECT_EQ(frequency, settled) << fixed << " " << each;
      }
    }
  }
}

TEST(CpuBudget, ReportsEachChange) {
  CpuBudget budget{kBudget, 99};
  EXPECT_EQ(budget.frequency(), 99U);
  EXPECT_EQ(budget.adapt({.cpu = milliseconds{80}, .wall = seconds{10}}), std::nullopt);
  EXPECT_EQ(budget.adapt({.cpu = milliseconds{180}, .wall = seconds{10}}),
            "the latest recording took 1.8 % of a CPU, more than --max-cpu 1%: the next recordings "
            "sample at 44 Hz, not 99");
  EXPECT_EQ(budget.frequency(), 44U);
  EXPECT_THAT(budget.adapt({.cpu = milliseconds{20}, .wall = seconds{10}}),
              Optional(HasSubstr("0.2 % of a CPU, --max-cpu 1% allows more: the next recordings "
                                 "sample at 88 Hz, not 44")));
  EXPECT_EQ(budget.adapt({}), std::nullopt) << "no time has passed";
}

TEST(CpuBudget, ReportsOnceThatTheLowestFrequencyTakesMore) {
  CpuBudget budget{0.005, 2};
  const CpuUse much{.cpu = seconds{1}, .wall = seconds{10}};
  EXPECT_THAT(budget.adapt(much), Optional(HasSubstr("at 1 Hz, not 2")));
  EXPECT_FALSE(budget.exceeded());
  EXPECT_THAT(budget.adapt(much),
              Optional(HasSubstr("10 % of a CPU, more than --max-cpu 0.5%, at the lowest "
                                 "frequency, 1 Hz: a longer PERIOD")));
  EXPECT_TRUE(budget.exceeded());
  EXPECT_EQ(budget.adapt(much), std::nullopt);
  EXPECT_TRUE(budget.exceeded());
  EXPECT_EQ(budget.adapt({.cpu = milliseconds{40}, .wall = seconds{10}}), std::nullopt);
  EXPECT_FALSE(budget.exceeded());
}

TEST(CpuBudget, CountsTheTimeOfThisProcess) {
  const auto before = cpu_use_until_now();
  auto now = before;
  while (now.cpu - before.cpu < milliseconds{20}) {
    now = cpu_use_until_now();
  }
  EXPECT_GE(now.wall - before.wall, milliseconds{1});
}

}  // namespace
}  // namespace pyinject::record
