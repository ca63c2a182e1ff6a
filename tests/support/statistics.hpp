// What chance allows in counts of samples.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>

namespace pyinject::test {

// COUNT of the samples in ALL.
struct Part {
  std::size_t count = 0;
  std::size_t all = 0;
};

// How many of ALL independent samples can have a property that each has with the probability SHARE:
// the number exceeds the first, or is below the second, in fewer than one of 10^7 tests (Chernoff's
// bound, which holds for any ALL). Samples at equal distances vary less than independent ones.
[[nodiscard]] std::size_t most_by_chance(std::size_t all, double share);
[[nodiscard]] std::size_t fewest_by_chance(std::size_t all, double share);

// For EXPECT_TRUE: whether PART can be a sample of a program whose true share is at most, at least,
// or, but for BIAS at most, exactly SHARE. A right program fails in fewer than one of 10^7 tests.
// The three accept any PART that is empty: require a number of samples, too.
[[nodiscard]] testing::AssertionResult share_is_at_most(const Part& part, double share);
[[nodiscard]] testing::AssertionResult share_is_at_least(const Part& part, double share);
[[nodiscard]] testing::AssertionResult share_is_near(const Part& part, double share, double bias);

}  // namespace pyinject::test
