#include "weave/synthetic_names.hpp"

#include <gtest/gtest.h>

namespace pyinject::weave {
namespace {

constexpr std::uint64_t kBase = 0x10000000;

NamedCode code(const std::string& name, std::uint32_t first_line) {
  return {.name = name, .file = "f.py", .first_line = first_line};
}

TEST(SyntheticNames, ANameHasOneAddress) {
  SyntheticNames names{kBase};
  const auto one = names.address("one");
  EXPECT_EQ(one, kBase + 9);
  EXPECT_EQ(names.address("one"), one);
  EXPECT_NE(names.address("two"), one);
  ASSERT_EQ(names.symbols().size(), 2U);
  EXPECT_EQ(names.symbols().front().first_line, 0U);
}

// With `perf script -F +symoff`: the line is the first line plus a quarter of the offset minus 8.
TEST(SyntheticNames, AnAddressTellsTheLine) {
  SyntheticNames names{kBase};
  names.expect(code("f", 10), 50);
  names.expect(code("f", 10), 40);
  const auto place = names.place(code("f", 10));
  EXPECT_EQ(place.address(10), place.begin + 9);
  EXPECT_EQ(place.address(11), place.begin + 13);
  EXPECT_EQ(place.address(50), place.begin + 9 + 4 * 40);
  EXPECT_EQ(place.address(0), place.begin + 9) << "unknown line";
  EXPECT_EQ(place.address(9), place.begin + 9) << "before the first line";
  EXPECT_EQ(place.address(51), place.begin + 9) << "no such line was announced";
  const auto symbol = names.symbols().front();
  EXPECT_EQ(symbol.address, place.begin);
  EXPECT_GT(symbol.address + symbol.size, place.address(50));
  EXPECT_EQ(symbol.file, "f.py");
  EXPECT_EQ(symbol.first_line, 10U);
  EXPECT_EQ(symbol.last_line, 50U);
  const auto next = names.place(code("g", 1));
  EXPECT_EQ(next.begin, symbol.address + symbol.size);
  EXPECT_GT(next.address(1) - 1, place.address(50)) << "perf looks up the byte before";
}

TEST(SyntheticNames, AnAddressTellsWhatItsFunctionDoes) {
  SyntheticNames names{kBase};
  names.expect(code("f", 10), 50);
  for (const auto does : {sample::Does::kUnknown, sample::Does::kByteCode, sample::Does::kCall}) {
    for (const auto line : {10U, 11U, 50U}) {
      const auto address = names.place(code("f", 10)).address(line, does);
      EXPECT_EQ(SyntheticNames::does_at(address), does);
      EXPECT_EQ((address - names.symbols().front().address - 8) / 4, line - 10);
    }
  }
}

TEST(SyntheticNames, FunctionsOfOneNameAreTwoByTheirFirstLines) {
  SyntheticNames names{kBase};
  names.expect(code("f", 10), 12);
  EXPECT_NE(names.place(code("f", 10)).begin, names.place(code("f", 20)).begin);
  EXPECT_EQ(names.place(code("f", 10)).begin, names.place(code("f", 10)).begin);
}

TEST(SyntheticNames, MadeUpLinesTakeNoRoom) {
  SyntheticNames names{kBase};
  names.expect(code("f", 1), 0xffffffff);
  const auto place = names.place(code("f", 1));
  EXPECT_EQ(place.address(0xffffffff), place.begin + 9);
  EXPECT_LE(names.symbols().front().size, 16U);
}

// A process can have code with any number of lines, but all processes share the range of names.
TEST(SyntheticNames, LinesDoNotTakeTheRoomOfNames) {
  SyntheticNames names{kBase};
  constexpr std::uint32_t kLines = 60'000;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    names.expect(code("f", i + 1), i + kLines);
    const auto place = names.place(code("f", i + 1));
    ASSERT_LT(place.address(i + kLines), names.range().end);
  }
  EXPECT_EQ(names.symbols().size(), 10'000U);
  EXPECT_GT(names.symbols().front().size, kLines);
  EXPECT_EQ(names.symbols().back().size, 16U) << "without lines";
  const auto& last = names.symbols().back();
  EXPECT_LT(last.address + last.size - kBase, 4 * SyntheticNames::kMostForLines + 10'000 * 32);
  const auto place = names.place(code("g", 7));
  EXPECT_EQ(names.symbols().back().name, "g");
  EXPECT_EQ(names.symbols().back().address, place.begin);
}

TEST(SyntheticNames, OneProcessDoesNotTakeTheLinesOfOthers) {
  constexpr std::uint32_t kGreedy = 1;
  constexpr std::uint32_t kModest = 2;
  constexpr std::uint32_t kLines = (1U << 20U) - 1;
  SyntheticNames names{kBase};
  for (std::uint32_t i = 1; i <= 16; ++i) {
    names.expect(code("f", i), i + kLines);
    (void)names.place(code("f", i), kGreedy);
  }
  EXPECT_EQ(names.without_lines().size(), 1U);
  EXPECT_GT(names.without_lines().at(kGreedy), 0U);
  names.expect(code("g", 1), 1000);
  const auto place = names.place(code("g", 1), kModest);
  EXPECT_EQ(place.address(1000), place.begin + 9 + 4 * 999);
  // The same function, hit first by the hostile process.
  names.expect(code("h", 1), kLines);
  const auto without = names.place(code("h", 1), kGreedy);
  EXPECT_EQ(without.address(kLines), without.address(1));
  EXPECT_EQ(names.place(code("h", 1), kGreedy).begin, without.begin);
  const auto with = names.place(code("h", 1), kModest);
  EXPECT_NE(with.address(kLines), with.address(1));
}

TEST(SyntheticNames, WhenTheRangeIsFullAllHaveTheLastPlace) {
  SyntheticNames names{kBase, 64};
  EXPECT_EQ(names.address("a"), kBase + 9);
  EXPECT_EQ(names.address("b"), kBase + 25);
  EXPECT_EQ(names.address("c"), kBase + 41);
  EXPECT_EQ(names.address("d"), kBase + 57);
  EXPECT_EQ(names.address("e"), kBase + 57);
  EXPECT_EQ(names.address("b"), kBase + 25);
  ASSERT_EQ(names.symbols().size(), 4U);
  EXPECT_EQ(names.symbols().back().name, "[no room for names]");
  EXPECT_EQ(names.symbols().back().address, kBase + 48);
}

}  // namespace
}  // namespace pyinject::weave
