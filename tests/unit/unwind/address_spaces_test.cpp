#include "unwind/address_spaces.hpp"

#include <gtest/gtest.h>

namespace pyinject::unwind {
namespace {

constexpr ProcessNumber kPid = 10;
constexpr ProcessNumber kChild = 11;

MappedFile mapped(std::uint64_t begin, std::uint64_t end, std::string path) {
  return {.begin = begin, .end = end, .executable = true, .path = std::move(path)};
}

class AddressSpacesTest : public testing::Test {
 protected:
  // The path mapped at ADDRESS; "": none.
  [[nodiscard]] std::string at(Time time, std::uint64_t address, ProcessNumber pid = kPid) const {
    const auto* const file = spaces_.find(pid, time, address);
    return file == nullptr ? "" : file->path;
  }
  AddressSpaces spaces_;
};

TEST_F(AddressSpacesTest, KnowsNothingOfAnUnknownProcess) {
  spaces_.map(1, kPid, mapped(0x1000, 0x2000, "/a"));
  spaces_.complete();
  EXPECT_EQ(spaces_.find(kChild, 1, 0x1000), nullptr);
  EXPECT_EQ(spaces_.settled_since(kChild), std::nullopt);
  EXPECT_FALSE(spaces_.origin(kChild));
  EXPECT_FALSE(spaces_.origin(kPid));
}

TEST_F(AddressSpacesTest, AMappingHoldsFromItsFirstByteToItsLast) {
  spaces_.map(1, kPid, mapped(0x1000, 0x2000, "/a"));
  spaces_.complete();
  EXPECT_EQ(at(1, 0xfff), "");
  EXPECT_EQ(at(1, 0x1000), "/a");
  EXPECT_EQ(at(1, 0x1fff), "/a");
  EXPECT_EQ(at(1, 0x2000), "");
  EXPECT_EQ(spaces_.find(kPid, 1, 0x1000)->mapped_by, kPid);
}

TEST_F(AddressSpacesTest, EmptyMappingsAreNone) {
  spaces_.map(1, kPid, mapped(0x1000, 0x1000, "/empty"));
  spaces_.map(1, kPid, mapped(0x3000, 0x2000, "/backwards"));
  spaces_.complete();
  EXPECT_EQ(spaces_.files().size(), 0U);
  EXPECT_EQ(at(1, 0x1000), "");
  EXPECT_EQ(at(1, 0x2800), "");
}

TEST_F(AddressSpacesTest, TheOrderOfTheFileDoesNotMatter) {
  spaces_.map(30, kPid, mapped(0x1000, 0x2000, "/third"));
  spaces_.map(10, kPid, mapped(0x1000, 0x2000, "/first"));
  spaces_.map(20, kPid, mapped(0x1000, 0x2000, "/second"));
  spaces_.complete();
  EXPECT_EQ(at(10, 0x1800), "/first");
  EXPECT_EQ(at(19, 0x1800), "/first");
  EXPECT_EQ(at(20, 0x1800), "/second");
  EXPECT_EQ(at(29, 0x1800), "/second");
  EXPECT_EQ(at(30, 0x1800), "/third");
  EXPECT_EQ(at(~Time{0}, 0x1800), "/third");
  EXPECT_EQ(spaces_.settled_since(kPid), 30U);
}

// perf gives the same time to everything that it finds at its start.
TEST_F(AddressSpacesTest, PrefersTheLaterRecordOfEqualTimes) {
  spaces_.map(0, kPid, mapped(0x1000, 0x2000, "/first"));
  spaces_.map(0, kPid, mapped(0x1000, 0x2000, "/second"));
  spaces_.complete();
  EXPECT_EQ(at(0, 0x1800), "/second");
}

TEST_F(AddressSpacesTest, ALaterMappingSplitsTheOlderOne) {
  spaces_.map(10, kPid, mapped(0x1000, 0x9000, "/large"));
  spaces_.map(20, kPid, mapped(0x3000, 0x4000, "/small"));
  spaces_.complete();
  EXPECT_EQ(at(20, 0x2fff), "/large");
  EXPECT_EQ(at(20, 0x3000), "/small");
  EXPECT_EQ(at(20, 0x3fff), "/small");
  EXPECT_EQ(at(20, 0x4000), "/large");
  EXPECT_EQ(at(19, 0x3800), "/large");
  EXPECT_EQ(at(19, 0x8fff), "/large");
}

TEST_F(AddressSpacesTest, ALaterMappingMayOverlapSeveral) {
  for (const std::uint64_t i : {1U, 2U, 3U, 4U}) {
    spaces_.map(i, kPid, mapped(i * 0x1000, (i + 1) * 0x1000, "/" + std::to_string(i)));
  }
  spaces_.map(10, kPid, mapped(0x1800, 0x4800, "/over"));
  spaces_.complete();
  EXPECT_EQ(at(10, 0x17ff), "/1");
  for (const std::uint64_t address : {0x1800U, 0x2000U, 0x3fffU, 0x47ffU}) {
    EXPECT_EQ(at(10, address), "/over");
  }
  EXPECT_EQ(at(10, 0x4800), "/4");
  EXPECT_EQ(at(9, 0x1900), "/1");
  EXPECT_EQ(at(9, 0x2900), "/2");
  EXPECT_EQ(at(9, 0x3900), "/3");
  EXPECT_EQ(at(9, 0x4100), "/4");
}

TEST_F(AddressSpacesTest, AChildGoesItsOwnWay) {
  spaces_.map(10, kPid, mapped(0x1000, 0x2000, "/both"));
  spaces_.fork(20, kPid, kChild);
  spaces_.map(30, kChild, mapped(0x1000, 0x2000, "/child"));
  spaces_.map(40, kPid, mapped(0x1000, 0x2000, "/parent"));
  spaces_.map(50, kPid, mapped(0x3000, 0x4000, "/parent too"));
  spaces_.complete();
  EXPECT_EQ(at(25, 0x1000, kPid), "/both");
  EXPECT_EQ(at(25, 0x1000, kChild), "/both");
  EXPECT_EQ(at(35, 0x1000, kPid), "/both");
  EXPECT_EQ(at(35, 0x1000, kChild), "/child");
  EXPECT_EQ(at(60, 0x1000, kPid), "/parent");
  EXPECT_EQ(at(60, 0x1000, kChild), "/child");
  EXPECT_EQ(at(60, 0x3000, kChild), "");
  // The path is that of the process that mapped the file: the parent.
  EXPECT_EQ(spaces_.find(kChild, 25, 0x1000)->mapped_by, kPid);
  ASSERT_TRUE(spaces_.origin(kChild));
  EXPECT_EQ(spaces_.origin(kChild)->parent, kPid);
  EXPECT_EQ(spaces_.origin(kChild)->time, 20U);
  EXPECT_EQ(spaces_.settled_since(kChild), 30U);
  EXPECT_EQ(spaces_.settled_since(kPid), 50U);
}

TEST_F(AddressSpacesTest, AChildHasOnlyWhatItsParentHadByThen) {
  spaces_.fork(20, kPid, kChild);
  spaces_.map(30, kPid, mapped(0x1000, 0x2000, "/later"));
  spaces_.map(10, kPid, mapped(0x5000, 0x6000, "/before"));
  spaces_.complete();
  EXPECT_EQ(at(40, 0x5000, kChild), "/before");
  EXPECT_EQ(at(40, 0x1000, kChild), "");
}

TEST_F(AddressSpacesTest, AThreadIsNoChild) {
  spaces_.map(10, kPid, mapped(0x1000, 0x2000, "/a"));
  spaces_.fork(20, kPid, kPid);
  spaces_.complete();
  EXPECT_EQ(at(30, 0x1000), "/a");
  EXPECT_FALSE(spaces_.origin(kPid));
  EXPECT_EQ(spaces_.settled_since(kPid), 10U);
}

TEST_F(AddressSpacesTest, AProcessOfTheSameNumberStartsAnew) {
  spaces_.map(10, kChild, mapped(0x1000, 0x2000, "/of the old one"));
  spaces_.fork(20, kPid, kChild);
  spaces_.complete();
  EXPECT_EQ(at(30, 0x1000, kChild), "");
  EXPECT_TRUE(spaces_.origin(kChild));
}

TEST_F(AddressSpacesTest, ExecClearsAll) {
  spaces_.map(10, kPid, mapped(0x1000, 0x2000, "/old"));
  spaces_.fork(20, kPid, kChild);
  spaces_.exec(30, kChild);
  spaces_.map(31, kChild, mapped(0x7000, 0x8000, "/new"));
  spaces_.complete();
  EXPECT_EQ(at(29, 0x1000, kChild), "/old");
  EXPECT_EQ(at(30, 0x1000, kChild), "");
  EXPECT_EQ(at(31, 0x7000, kChild), "/new");
  EXPECT_EQ(at(31, 0x1000, kPid), "/old");
  EXPECT_FALSE(spaces_.origin(kChild)) << "nothing of its parent is left";
}

// Processes with the same pid: a child, the program it exec'ed, and another process.
TEST_F(AddressSpacesTest, InheritByTheTimeOfTheFork) {
  spaces_.map(10, kPid, mapped(0x1000, 0x2000, "/a"));
  spaces_.fork(20, kPid, kChild);
  spaces_.exec(30, kChild);
  spaces_.fork(40, kChild + 1, kChild);
  spaces_.complete();
  EXPECT_FALSE(spaces_.origin(kChild, 19));
  ASSERT_TRUE(spaces_.origin(kChild, 29));
  EXPECT_EQ(spaces_.origin(kChild, 29)->parent, kPid);
  EXPECT_EQ(spaces_.origin(kChild, 29)->time, 20U);
  EXPECT_FALSE(spaces_.origin(kChild, 30));
  EXPECT_EQ(spaces_.origin(kChild, 40)->parent, kChild + 1);
  EXPECT_EQ(spaces_.began(kChild, 19), 0U);
  EXPECT_EQ(spaces_.began(kChild, 29), 20U);
  EXPECT_EQ(spaces_.began(kChild, 39), 30U);
  EXPECT_EQ(spaces_.began(kPid, 39), 0U);
}

TEST_F(AddressSpacesTest, EveryExecIsRemembered) {
  for (const std::uint64_t i : {1U, 2U, 3U}) {
    spaces_.map(10 * i, kPid, mapped(0x1000, 0x2000, "/" + std::to_string(i)));
    spaces_.exec(10 * i + 5, kPid);
  }
  spaces_.complete();
  EXPECT_EQ(at(9, 0x1000), "");
  EXPECT_EQ(at(14, 0x1000), "/1");
  EXPECT_EQ(at(15, 0x1000), "");
  EXPECT_EQ(at(20, 0x1000), "/2");
  EXPECT_EQ(at(34, 0x1000), "/3");
  EXPECT_EQ(at(35, 0x1000), "");
}

// A server that forks for each request; a copy of all mappings for each would take gigabytes.
TEST_F(AddressSpacesTest, RemembersTheMappingsOfManyForks) {
  constexpr std::uint32_t kMany = 50'000;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    spaces_.map(0, kPid, mapped(i * 0x1000, (i + 1) * 0x1000, std::to_string(i)));
  }
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    spaces_.fork(i, kPid, kPid + i);
    if (i % 2 == 0) {
      spaces_.exec(i + 1, kPid + i);
    }
  }
  spaces_.complete();
  EXPECT_EQ(at(kMany, 0x5000, kPid + kMany), "5");
  EXPECT_EQ(at(kMany + 2, 0x5000, kPid + kMany), "");
  EXPECT_EQ(at(kMany + 2, 0x5000, kPid + 1), "5");
}

TEST_F(AddressSpacesTest, ForkCyclesEnd) {
  spaces_.map(1, kPid, mapped(0x1000, 0x2000, "/a"));
  spaces_.fork(2, kPid, kChild);
  spaces_.fork(3, kChild, kPid);
  spaces_.complete();
  EXPECT_EQ(at(4, 0x1000, kPid), "/a");
  EXPECT_EQ(spaces_.origin(kPid)->parent, kChild);
  EXPECT_EQ(spaces_.origin(kChild)->parent, kPid);
}

// A just-in-time compiler maps the same addresses again and again.
TEST_F(AddressSpacesTest, RemembersManyReplacedMappings) {
  constexpr std::uint64_t kMany = 20'000;
  for (std::uint64_t i = 1; i <= kMany; ++i) {
    spaces_.map(i, kPid, mapped(0x1000, 0x2000, std::to_string(i)));
  }
  spaces_.complete();
  EXPECT_EQ(at(1, 0x1000), "1");
  EXPECT_EQ(at(1000, 0x1000), "1000");
  EXPECT_EQ(at(kMany, 0x1000), std::to_string(kMany));
  EXPECT_EQ(at(kMany + 1, 0x1000), std::to_string(kMany));
}

// A hostile file: each mapping would split all older ones if they were not removed by then. Fast or
// it never ends.
TEST_F(AddressSpacesTest, SurvivesManyOverlaps) {
  constexpr std::uint64_t kMany = 30'000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    spaces_.map(i, kPid, mapped(0x1000 + i, 0x10'0000'0000 - i, "/nested"));
  }
  for (std::uint64_t i = 0; i < kMany; ++i) {
    spaces_.map(kMany + i, kPid, mapped(0x1000, 0x10'0000'0000, "/whole"));
  }
  spaces_.complete();
  EXPECT_EQ(at(2 * kMany, 0x10'0000), "/whole");
}

}  // namespace
}  // namespace pyinject::unwind
