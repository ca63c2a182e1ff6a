#include "support/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace pyinject::test {

namespace {

// ln 10^7
constexpr double kCertainty = 16.1181;

// The relative entropy of two shares, for WAS in (0, 1).
double divergence(double is, double was) {
  const auto term = [](double a, double b) { return a == 0 ? 0 : a * std::log(a / b); };
  return term(is, was) + term(1 - is, 1 - was);
}

testing::AssertionResult verdict(bool right, const Part& part, std::string_view wanted) {
  return (right ? testing::AssertionSuccess() : testing::AssertionFailure()) << fmt::format(
             "{} of {} samples ({:.2f} %), expected {}", part.count, part.all,
             part.all == 0 ? 0
                           : 100 * static_cast<double>(part.count) / static_cast<double>(part.all),
             wanted);
}

}  // namespace

std::size_t most_by_chance(std::size_t all, double share) {
  if (share <= 0 || share >= 1) {
    return share <= 0 ? 0 : all;
  }
  const auto whole = static_cast<double>(all);
  auto most = static_cast<std::size_t>(std::floor(whole * share));
  while (most < all &&
         whole * divergence(static_cast<double>(most + 1) / whole, share) < kCertainty) {
    ++most;
  }
  return most;
}

std::size_t fewest_by_chance(std::size_t all, double share) {
  return all - most_by_chance(all, 1 - share);
}

testing::AssertionResult share_is_at_most(const Part& part, double share) {
  const auto most = most_by_chance(part.all, share);
  return verdict(part.count <= most, part,
                 fmt::format("at most {:.2f} %, by chance {}", 100 * share, most));
}

testing::AssertionResult share_is_at_least(const Part& part, double share) {
  const auto fewest = fewest_by_chance(part.all, share);
  return verdict(part.count >= fewest, part,
                 fmt::format("at least {:.2f} %, by chance {}", 100 * share, fewest));
}

testing::AssertionResult share_is_near(const Part& part, double share, double bias) {
  const auto fewest = fewest_by_chance(part.all, std::max(share - bias, 0.0));
  const auto most = most_by_chance(part.all, std::min(share + bias, 1.0));
  return verdict(
      part.count >= fewest && part.count <= most, part,
      fmt::format("{:.2f} ± {:.2f} %, by chance {} to {}", 100 * share, 100 * bias, fewest, most));
}

}  // namespace pyinject::test
