#include "cli/did_you_mean.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pyinject::cli {

namespace {

// Optimal string alignment.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> cost(from.size() + 1,
                                             std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t change = from[i - 1] == to[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost.back().back();
}

}  // namespace

std::optional<std::string_view> did_you_mean(std::string_view word,
                                             std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 64;  // limit on compared words
  constexpr std::size_t kMost = 2;
  if (word.size() > kLongest) {
    return std::nullopt;
  }
  constexpr std::size_t kLeastOfBeginning = 3;
  const auto begins = [word](std::string_view one) { return one.starts_with(word); };
  if (word.size() >= kLeastOfBeginning && std::ranges::count_if(known, begins) == 1) {
    return *std::ranges::find_if(known, begins);
  }
  std::optional<std::string_view> nearest;
  std::size_t least = kMost + 1;
  bool several = false;
  for (const auto one : known) {
    const auto changes = distance(word, one);
    if (2 * changes >= one.size() || changes > least) {
      continue;
    }
    several = changes == least;
    if (changes < least) {
      nearest = one;
      least = changes;
    }
  }
  return several || least > kMost ? std::nullopt : nearest;
}

}  // namespace pyinject::cli
