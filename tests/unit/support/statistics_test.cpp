#include "support/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>

namespace pyinject::test {
namespace {

// The probability of more than MOST of ALL, summed exactly.
double tail(std::size_t most, std::size_t all, double share) {
  const auto n = static_cast<double>(all);
  double sum = 0;
  for (std::size_t count = most + 1; count <= all; ++count) {
    const auto k = static_cast<double>(count);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                    k * std::log(share) + (n - k) * std::log1p(-share));
  }
  return sum;
}

TEST(ChanceOfSamples, ExceedsTheBoundsInFewerThanOneOfTenMillionTests) {
  for (const double share : {0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999}) {
    for (const std::size_t all : {1U, 10U, 100U, 1000U, 10000U}) {
      SCOPED_TRACE(std::to_string(share) + " of " + std::to_string(all));
      const auto most = most_by_chance(all, share);
      EXPECT_LT(tail(most, all, share), 1e-7);
      EXPECT_LE(static_cast<double>(all) * share, static_cast<double>(most) + 1);
      EXPECT_EQ(fewest_by_chance(all, 1 - share), all - most_by_chance(all, share));
    }
  }
}

// A looser bound would not notice a wrong program.
TEST(ChanceOfSamples, HasTightBounds) {
  EXPECT_EQ(most_by_chance(1000, 0.001), 10U);
  EXPECT_EQ(most_by_chance(10'000, 0.5), 5283U);
  EXPECT_EQ(fewest_by_chance(10'000, 0.5), 4717U);
  EXPECT_EQ(fewest_by_chance(2000, 0.99), 1950U);
  EXPECT_EQ(most_by_chance(1000, 0), 0U);
  EXPECT_EQ(most_by_chance(1000, 1), 1000U);
  EXPECT_EQ(most_by_chance(0, 0.5), 0U);
}

TEST(ShareOfSamples, IsComparedWithWhatChanceAllows) {
  EXPECT_TRUE(share_is_at_most({10, 1000}, 0.001));
  EXPECT_FALSE(share_is_at_most({11, 1000}, 0.001));
  EXPECT_TRUE(share_is_at_least({4717, 10'000}, 0.5));
  EXPECT_FALSE(share_is_at_least({4716, 10'000}, 0.5));
  EXPECT_TRUE(share_is_near({5383, 10'000}, 0.5, 0.01));
  EXPECT_FALSE(share_is_near({5384, 10'000}, 0.5, 0.01));
  EXPECT_FALSE(share_is_near({4616, 10'000}, 0.5, 0.01));
  EXPECT_EQ(std::string{share_is_at_most({11, 1000}, 0.001).message()},
            "11 of 1000 samples (1.10 %), expected at most 0.10 %, by chance 10");
}

}  // namespace
}  // namespace pyinject::test
