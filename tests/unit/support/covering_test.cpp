#include "support/covering.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<ListedTest> made_tests() {
  std::vector<ListedTest> all{{.suite = "Plain", .test = "HasNoRow"}};
  for (const auto* const row : {"py3_12_pyenv", "py3_13_trixie_chroot", "py3_13_trixie_loader",
                                "py3_14_sid_chroot", "py3_15_sid_chroot"}) {
    for (const auto* const test : {"First/", "Second/"}) {
      for (const auto* const suite : {"Pythons/MadeSuite", "Pythons/MadeVersions"}) {
        all.push_back({.suite = suite, .test = std::string{test} + row});
      }
    }
  }
  return all;
}

std::map<std::string, std::set<std::string>> rows_by_test(const std::vector<ListedTest>& tests) {
  std::map<std::string, std::set<std::string>> rows;
  for (const auto& one : tests) {
    rows[one.suite + "." + std::string{one.base_test()}].insert(std::string{one.row()});
  }
  return rows;
}

class MadeWays {};
COVER_TESTS(MadeWays, 2);

class MadeVersions {};
COVER(MadeVersions, kEveryVersion);

TEST(Covering, TakesOneRowOfEachTest) {
  const auto rows = rows_by_test(covering(made_tests(), RowChoice::kPerTest, 7));
  EXPECT_THAT(rows.at("Plain.HasNoRow"), ElementsAre(""));
  EXPECT_THAT(rows.at("Pythons/MadeSuite.First"), SizeIs(1));
  EXPECT_THAT(rows.at("Pythons/MadeSuite.Second"), SizeIs(1));
}

TEST(Covering, TakesTheSameRowForAllTestsOfASharingSuite) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto rows = rows_by_test(covering(made_tests(), RowChoice::kPerSuite, seed));
    EXPECT_EQ(rows.at("Pythons/MadeSuite.First"), rows.at("Pythons/MadeSuite.Second"));
  }
}

TEST(Covering, TakesSomeTestsOfASuiteAndReachesAll) {
  std::vector<ListedTest> all;
  for (const auto* const test : {"First/", "Second/", "Third/", "Fourth/"}) {
    for (const auto* const row : {"py3_13_path", "py3_14_path"}) {
      all.push_back({.suite = "Pythons/MadeWays", .test = std::string{test} + row});
    }
  }
  std::map<std::string, std::set<std::string>> reached;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const auto rows = rows_by_test(covering(all, RowChoice::kPerSuite, seed));
    EXPECT_THAT(rows, SizeIs(2));
    reached.insert(rows.begin(), rows.end());
  }
  EXPECT_THAT(reached, SizeIs(4));
}

TEST(Covering, IsTheSameForTheSameSeed) {
  EXPECT_EQ(rows_by_test(covering(made_tests(), RowChoice::kPerTest, 42)),
            rows_by_test(covering(made_tests(), RowChoice::kPerTest, 42)));
}

TEST(Covering, ReachesEachRowWithinAsManySeedsAsThereAreRows) {
  for (const std::uint64_t block : {0U, 1U, 1000U}) {
    std::set<std::string> reached;
    for (std::uint64_t seed = block * 5; seed < block * 5 + 5; ++seed) {
      reached.merge(rows_by_test(covering(made_tests(), RowChoice::kPerTest, seed))
                        .at("Pythons/MadeSuite.First"));
    }
    EXPECT_THAT(reached, SizeIs(5));
  }
}

TEST(Covering, TakesARowOfEachVersionWhereASuiteNeedsIt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::set<std::string> versions;
    const auto rows = rows_by_test(covering(made_tests(), RowChoice::kPerTest, seed));
    for (const auto& row : rows.at("Pythons/MadeVersions.First")) {
      versions.insert(axes_of("MadeVersions", row).version);
    }
    EXPECT_THAT(versions, ElementsAre("3_12", "3_13", "3_14", "3_15"));
  }
}

TEST(AxesOf, ReadsTheNameOfARow) {
  const auto of = [](const char* suite, const char* row) {
    const auto axes = axes_of(suite, row);
    return std::vector{axes.version, axes.way, axes.perf, axes.engine};
  };
  EXPECT_THAT(of("Dump", "py3_13_trixie_chroot"), ElementsAre("3_13", "trixie_chroot", "", ""));
  EXPECT_THAT(of("Dump", "py3_13t_given"), ElementsAre("3_13t", "given", "", ""));
  EXPECT_THAT(of("BpfStacks", "perf6_12_py3_14_jit"), ElementsAre("3_14", "", "perf6_12", "bpf"));
  EXPECT_THAT(of("CompleteStacks", "perf_py3_15"), ElementsAre("3_15", "", "perf", "trampoline"));
  EXPECT_THAT(of("Pictures", "py3_12_bpf"), ElementsAre("3_12", "", "", "bpf"));
  EXPECT_THAT(of("Launch", "14"), ElementsAre("3_14", "", "", ""));
  EXPECT_THAT(of("BadUses", "NoFile"), ElementsAre("", "", "", ""));
}

}  // namespace
}  // namespace pyinject::test
