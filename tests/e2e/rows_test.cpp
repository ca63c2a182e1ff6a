// The rows that consecutive seeds choose cover every pair of axes of the end-to-end tests.
#include "support/covering.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using Pairs = std::set<std::string>;

void add_pair(Pairs& pairs, const std::string& one, const std::string& other) {
  if (!one.empty() && !other.empty()) {
    pairs.insert(fmt::format("{} x {}", one, other));
  }
}

Pairs pairs_of(const std::vector<ListedTest>& tests) {
  Pairs pairs;
  for (const auto& one : tests) {
    const auto axes = axes_of(one.base_suite(), one.row());
    add_pair(pairs, axes.version, axes.engine);
    add_pair(pairs, axes.version, axes.perf);
    add_pair(pairs, axes.perf, axes.engine);
    add_pair(pairs, axes.version, axes.way);
  }
  return pairs;
}

// The last of the seeds: that of this run.
std::uint64_t this_seed() {
  const char* const text = std::getenv("PYINJECT_TEST_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

TEST(Rows, CoverAllPairsOfTheMatrixWithSixtySeeds) {
  constexpr std::uint64_t kSeeds = 60;
  const auto all = tests_of_this_program();
  Pairs covered;
  for (std::uint64_t i = 0; i < kSeeds; ++i) {
    covered.merge(pairs_of(covering(all, RowChoice::kPerSuite, this_seed() - i)));
  }
  EXPECT_EQ(covered, pairs_of(all));
}

// What the tool supports, as far as this machine has it: a pair that no test has is no pair of
// the matrix above.
TEST(Rows, HaveAllPairsInTheMatrix) {
  const auto all = pairs_of(tests_of_this_program());
  Pairs wanted;
  for (const auto* const version : {"3_12", "3_13", "3_14", "3_15"}) {
    for (const auto* const other : {"bpf", "trampoline", "perf", "perf6_12", "perf7"}) {
      add_pair(wanted, version, other);
    }
  }
  for (const auto* const perf : {"perf", "perf6_12", "perf7"}) {
    for (const auto* const engine : {"bpf", "trampoline"}) {
      add_pair(wanted, perf, engine);
    }
  }
  EXPECT_THAT(all, testing::IsSupersetOf(wanted));
}

}  // namespace
}  // namespace pyinject::test
