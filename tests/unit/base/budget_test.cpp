#include "base/budget.hpp"

#include <gtest/gtest.h>

namespace pyinject::base {
namespace {

TEST(Allowance, RefusesAllAfterTheFirstRefusal) {
  Allowance allowance{10};
  EXPECT_TRUE(allowance.take(7));
  EXPECT_EQ(allowance.left(), 3U);
  EXPECT_FALSE(allowance.take(4));
  EXPECT_TRUE(allowance.exhausted());
  EXPECT_FALSE(allowance.take(1));
  EXPECT_EQ(allowance.left(), 0U);
  EXPECT_EQ(allowance.taken(), 7U);
}

TEST(Budget, LeavesMostOfItToOthers) {
  Budget budget{1000};
  EXPECT_EQ(budget.left(1), 200U);
  EXPECT_FALSE(budget.take(1, 201));
  EXPECT_EQ(budget.held_by(1), 0U) << "a refused amount is not charged";
  EXPECT_TRUE(budget.take(1, 200));
  EXPECT_FALSE(budget.take(1, 1));
  EXPECT_EQ(budget.left(2), 160U);
}

TEST(Budget, HasRoomForOneMoreAfterTenThatTakeAllTheyCan) {
  constexpr Budget::Spender kNext = 10;
  Budget budget{1'000'000};
  for (int round = 0; round < 100; ++round) {
    for (Budget::Spender spender = 0; spender < kNext; ++spender) {
      budget.charge(spender, budget.left(spender));
    }
  }
  EXPECT_GT(budget.left(kNext), 20'000U);
}

TEST(Budget, TakesBack) {
  Budget budget{1000};
  ASSERT_TRUE(budget.take(1, 200));
  budget.give_back(1, 100);
  EXPECT_EQ(budget.spent(), 100U);
  EXPECT_EQ(budget.left(1), 100U);
  budget.give_back(1, 1000);
  EXPECT_EQ(budget.spent(), 0U) << "at most the held amount is given back";
}

TEST(Budget, ChargesWhatWasUsedAlready) {
  Budget budget{100};
  budget.charge(1, 300);
  EXPECT_EQ(budget.left(1), 0U);
  EXPECT_EQ(budget.left(2), 0U);
}

}  // namespace
}  // namespace pyinject::base
