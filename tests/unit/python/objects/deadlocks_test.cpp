#include "python/objects/deadlocks.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace pyinject::python {
namespace {

using Cycles = std::vector<std::vector<std::size_t>>;

// A wait of thread WAITER for OWNER; 0: unknown.
Wait wait(pid_t waiter, pid_t owner) {
  return {.waiter = base::Tid{waiter},
          .kind = Wait::Kind::kRLock,
          .object = "RLock",
          .owner = owner == 0 ? std::nullopt : std::optional{base::Tid{owner}}};
}

TEST(FindDeadlocks, ReturnsMembersInTheirOrder) {
  EXPECT_EQ(find_deadlocks(std::vector{wait(3, 1), wait(1, 2), wait(2, 3)}), (Cycles{{1, 2, 0}}));
  EXPECT_EQ(find_deadlocks(std::vector{wait(1, 2), wait(2, 1)}), (Cycles{{0, 1}}));
  EXPECT_EQ(find_deadlocks(std::vector{wait(5, 5)}), (Cycles{{0}}));
}

TEST(FindDeadlocks, LeavesOutThoseWhoOnlyWaitForACycle) {
  EXPECT_EQ(find_deadlocks(std::vector{wait(9, 1), wait(0x10, 9), wait(1, 2), wait(2, 1)}),
            (Cycles{{2, 3}}));
  EXPECT_EQ(find_deadlocks(std::vector{wait(1, 3), wait(3, 4), wait(4, 3)}), (Cycles{{1, 2}}));
}

TEST(FindDeadlocks, FindsAllOfThem) {
  EXPECT_EQ(find_deadlocks(std::vector{wait(1, 2), wait(3, 4), wait(2, 1), wait(4, 3), wait(5, 0)}),
            (Cycles{{0, 2}, {1, 3}}));
}

TEST(FindDeadlocks, ClaimsNoneWithoutOwners) {
  EXPECT_TRUE(find_deadlocks({}).empty());
  EXPECT_TRUE(find_deadlocks(std::vector{wait(1, 2), wait(2, 0)}).empty());
  EXPECT_TRUE(find_deadlocks(std::vector{wait(1, 2), wait(2, 7)}).empty());
}

TEST(FindDeadlocks, CountsTheFirstWaitOfAThread) {
  EXPECT_EQ(find_deadlocks(std::vector{wait(1, 2), wait(1, 1), wait(2, 1)}), (Cycles{{0, 2}}));
}

}  // namespace
}  // namespace pyinject::python
