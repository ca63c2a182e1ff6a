#include "unwind/pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace pyinject::unwind {
namespace {

void put(Pieces& pieces, std::uint64_t begin, std::uint64_t end, std::uint64_t from = 0) {
  pieces.put({.begin = begin, .end = end, .from = from}, [](const Piece& /*old*/) {});
}

// The time since which the piece at ADDRESS exists.
std::optional<std::uint64_t> since(const Pieces& pieces, std::uint64_t address) {
  const auto* const piece = pieces.at(address);
  return piece == nullptr ? std::nullopt : std::optional{piece->from};
}

TEST(PiecesTest, NothingIsMappedAtFirst) {
  const Pieces pieces;
  EXPECT_EQ(pieces.at(0), nullptr);
  EXPECT_EQ(pieces.cost_of_copy(), 0U);
  EXPECT_EQ(pieces.cost_of_put({.begin = 1, .end = 2}), 0U);
}

TEST(PiecesTest, ALaterPieceLeavesTheEndsOfAnEarlierOne) {
  Pieces pieces;
  put(pieces, 10, 50, 1);
  std::vector<Piece> cut;
  pieces.put({.begin = 20, .end = 30, .from = 2}, [&](const Piece& old) { cut.push_back(old); });
  EXPECT_EQ(since(pieces, 9), std::nullopt);
  EXPECT_EQ(since(pieces, 19), 1U);
  EXPECT_EQ(since(pieces, 20), 2U);
  EXPECT_EQ(since(pieces, 29), 2U);
  EXPECT_EQ(since(pieces, 30), 1U);
  EXPECT_EQ(since(pieces, 50), std::nullopt);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].begin, 10U);
  EXPECT_EQ(cut[0].end, 50U);
}

// Pieces of all sizes, compared with an array that stores the last piece per address.
TEST(PiecesTest, AnyOrderOfPiecesIsAsAddressByAddress) {
  constexpr std::uint64_t kAddresses = 5000;
  constexpr std::uint64_t kPuts = 4000;
  std::mt19937_64 random{1};  // NOLINT(cert-msc51-cpp,cert-msc32-c): the same each time
  Pieces pieces;
  std::vector<std::optional<std::uint64_t>> expected(kAddresses);
  for (std::uint64_t i = 0; i < kPuts; ++i) {
    const auto size = 1 + (i % 100 == 0 ? random() % kAddresses : random() % 3);
    const auto begin = random() % kAddresses;
    const auto end = std::min(begin + size, kAddresses);
    std::uint64_t lost = 0;
    pieces.put({.begin = begin, .end = end, .from = i}, [&](const Piece& old) {
      lost += std::min(old.end, end) - std::max(old.begin, begin);
    });
    std::uint64_t taken = 0;
    for (auto at = begin; at < end; ++at) {
      taken += expected[at] ? 1 : 0;
      expected[at] = i;
    }
    ASSERT_EQ(lost, taken) << i;
  }
  for (std::uint64_t at = 0; at < kAddresses; ++at) {
    ASSERT_EQ(since(pieces, at), expected[at]) << at;
  }
}

TEST(PiecesTest, ACopyAndItsOriginChangeApart) {
  Pieces pieces;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    put(pieces, 2 * i, 2 * i + 1, 1);
  }
  auto copy = pieces;
  put(copy, 100, 101, 2);
  put(pieces, 300, 301, 3);
  put(pieces, 1001, 1002, 3);
  EXPECT_EQ(since(copy, 100), 2U);
  EXPECT_EQ(since(pieces, 100), 1U);
  EXPECT_EQ(since(copy, 300), 1U);
  EXPECT_EQ(since(pieces, 300), 3U);
  EXPECT_EQ(since(copy, 1001), std::nullopt);
  EXPECT_EQ(since(copy, 1998), 1U);
}

TEST(PiecesTest, ACopyTakesOnlyWhatChanges) {
  constexpr std::uint64_t kMappings = 29'000;
  Pieces pieces;
  for (std::uint64_t i = 0; i < kMappings; ++i) {
    put(pieces, i, i + 1);
  }
  const Piece one{.begin = 5000, .end = 5001};
  EXPECT_EQ(pieces.cost_of_put(one), 0U) << "not shared";
  constexpr auto kAll = kMappings * sizeof(Piece);
  EXPECT_LT(pieces.cost_of_copy(), kAll / 50);
  auto copy = pieces;
  EXPECT_GT(copy.cost_of_put(one), 0U);
  EXPECT_LT(copy.cost_of_put(one), kAll / 50);
  EXPECT_GE(copy.cost_of_put({.begin = 0, .end = kMappings}), kAll);
  copy.put(one, [](const Piece& /*old*/) {});
  EXPECT_EQ(copy.cost_of_put(one), 0U) << "not shared any more";
  EXPECT_EQ(pieces.cost_of_put(one), 0U);
}

}  // namespace
}  // namespace pyinject::unwind
