#include "weave/kept_mappings.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include <sys/mman.h>

namespace pyinject::weave {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kFailed = ~std::uint64_t{0} - 11;  // -ENOMEM
constexpr std::uint64_t kReadWrite = PROT_READ | PROT_WRITE;

class KeptMappingsTest : public testing::Test {
 protected:
  using Kind = KeptMappings::Kind;
  // Each call takes until the next unit of time. Returns its time.
  std::uint64_t call(Kind kind, const KeptMappings::Arguments& arguments, std::uint64_t result,
                     std::uint32_t pid = 7) {
    const auto time = time_ += 2;
    kept_.enters({.pid = pid, .tid = pid}, time, kind, arguments);
    kept_.leaves({.pid = pid, .tid = pid}, time + 1, kind, result);
    return time;
  }
  std::uint64_t map(std::uint64_t at, std::uint64_t pages, std::uint64_t protection = kReadWrite) {
    return call(Kind::kMap, {0, pages * kPage - 1, protection}, at);
  }
  void unmap(std::uint64_t at, std::uint64_t pages) {
    (void)call(Kind::kUnmap, {at, pages * kPage}, 0);
  }
  std::uint64_t pages_of(std::uint64_t time, std::uint32_t tid = 7) {
    if (!completed_) {
      completed_ = true;
      kept_.complete(young_since_);
    }
    return kept_.of(tid, time) / kPage;
  }
  KeptMappings kept_;
  std::uint64_t young_since_ = ~std::uint64_t{0};

 private:
  std::uint64_t time_ = 100;
  bool completed_ = false;
};

TEST_F(KeptMappingsTest, AreThoseThatAreNotUnmapped) {
  const auto kept = map(0x10000, 4);
  const auto used = map(0x20000, 4);
  const auto partly = map(0x30000, 5);
  unmap(0x20000, 4);
  unmap(0x31000, 2);
  EXPECT_EQ(pages_of(kept), 4U);
  EXPECT_EQ(pages_of(used), 0U);
  EXPECT_EQ(pages_of(partly), 3U);
  EXPECT_EQ(kept_.mapped(), 13 * kPage);
  EXPECT_EQ(kept_.kept(), 7 * kPage);
}

TEST_F(KeptMappingsTest, MayBeInUseIfTheyAreYoung) {
  const auto old = map(0x10000, 4);
  young_since_ = map(0x20000, 2);
  const auto grown = call(Kind::kRemap, {0x10000, 4 * kPage, 5 * kPage}, 0x10000);
  EXPECT_EQ(pages_of(old), 4U);
  EXPECT_EQ(pages_of(young_since_), 0U);
  EXPECT_EQ(pages_of(grown), 0U);
  EXPECT_EQ(kept_.young(), 3 * kPage);
}

TEST_F(KeptMappingsTest, BelongToTheLastCallThatMapsThem) {
  const auto first = map(0x10000, 4);
  const auto second = map(0x11000, 1);  // MAP_FIXED
  const auto none = call(Kind::kMap, {0, kPage, kReadWrite}, kFailed);
  EXPECT_EQ(pages_of(first), 3U);
  EXPECT_EQ(pages_of(second), 1U);
  EXPECT_EQ(pages_of(none), 0U);
}

TEST_F(KeptMappingsTest, StayThoseOfTheFirstCallWhenTheyGrow) {
  const auto mapped = map(0x10000, 4);
  const auto grown = call(Kind::kRemap, {0x10000, 4 * kPage, 6 * kPage}, 0x50000);
  const auto other = map(0x10000, 1);  // where it was
  const auto failed = call(Kind::kRemap, {0x50000, 6 * kPage, 90 * kPage}, kFailed);
  EXPECT_EQ(pages_of(mapped), 4U);
  EXPECT_EQ(pages_of(grown), 2U);
  EXPECT_EQ(pages_of(other), 1U);
  EXPECT_EQ(pages_of(failed), 0U);
}

TEST_F(KeptMappingsTest, ShrinkWithMremap) {
  const auto mapped = map(0x10000, 4);
  const auto shrunk = call(Kind::kRemap, {0x10000, 4 * kPage, 1 * kPage}, 0x10000);
  EXPECT_EQ(pages_of(mapped), 1U);
  EXPECT_EQ(pages_of(shrunk), 0U);
}

TEST_F(KeptMappingsTest, EndWhereTheHeapEnds) {
  const auto unknown = call(Kind::kBreak, {0x14000}, 0x14000);
  const auto kept = call(Kind::kBreak, {0x16000}, 0x16000);
  const auto used = call(Kind::kBreak, {0x20000}, 0x20000);
  (void)call(Kind::kBreak, {0x17000}, 0x17000);
  EXPECT_EQ(pages_of(unknown), 0U);
  EXPECT_EQ(kept_.unknown(), 1U);
  EXPECT_EQ(pages_of(kept), 2U);
  EXPECT_EQ(pages_of(used), 1U);
}

// As the heaps of threads in glibc, and stacks of threads.
TEST_F(KeptMappingsTest, BeginWhereReservedMemoryBecomesWritable) {
  const auto reserved = map(0x10000, 16, PROT_NONE);
  const auto first = call(Kind::kProtect, {0x10000, 2 * kPage, kReadWrite}, 0);
  const auto second = call(Kind::kProtect, {0x11000, 3 * kPage, kReadWrite}, 0);
  (void)call(Kind::kProtect, {0x13000, kPage, PROT_NONE}, 0);
  EXPECT_EQ(pages_of(reserved), 0U);
  EXPECT_EQ(pages_of(first), 2U);
  EXPECT_EQ(pages_of(second), 1U);
}

// A thread maps what another one has just unmapped, before that call returns.
TEST_F(KeptMappingsTest, StayWhenAnotherThreadUnmaps) {
  const auto mapped = map(0x10000, 4);
  kept_.enters({.pid = 7, .tid = 8}, 200, Kind::kUnmap, {0x10000, 4 * kPage});
  kept_.enters({.pid = 7, .tid = 9}, 199, Kind::kMap, {0, 4 * kPage, kReadWrite});
  kept_.leaves({.pid = 7, .tid = 9}, 202, Kind::kMap, 0x10000);
  kept_.leaves({.pid = 7, .tid = 8}, 203, Kind::kUnmap, 0);
  EXPECT_EQ(pages_of(mapped), 0U);
  EXPECT_EQ(pages_of(199, 9), 4U);
}

TEST_F(KeptMappingsTest, CountAnAllocatorsBlocksByTheirWeight) {
  const auto allocate = [&](std::uint64_t at, std::uint64_t pages, std::uint32_t pid = 7) {
    return call(Kind::kAllocate, {at, 100, pages * kPage}, 0, pid);
  };
  const auto kept = allocate(0x100, 2);
  const auto freed = allocate(0x200, 3);
  (void)call(Kind::kFree, {0x200}, 0);
  (void)call(Kind::kFree, {0x300}, 0);  // allocated before the recording
  const auto forgotten = allocate(0x400, 4);
  const auto next = allocate(0x400, 5);
  const auto other = allocate(0x100, 6, 8);
  kept_.ends(8, ~std::uint64_t{0});
  EXPECT_EQ(pages_of(kept), 2U);
  EXPECT_EQ(pages_of(freed), 0U);
  EXPECT_EQ(pages_of(forgotten), 0U) << "its free was lost";
  EXPECT_EQ(pages_of(next), 5U);
  EXPECT_EQ(pages_of(other, 8), 0U);
  EXPECT_EQ(kept_.mapped(), 20 * kPage);
  EXPECT_EQ(kept_.kept(), 7 * kPage);
}

TEST_F(KeptMappingsTest, AreGivenBackAtTheEndOfAProcess) {
  const auto mapped = map(0x10000, 4);
  kept_.ends(7, 150);
  const auto other = call(Kind::kMap, {0, kPage, kReadWrite}, 0x10000, 8);
  EXPECT_EQ(pages_of(mapped), 0U);
  EXPECT_EQ(pages_of(other, 8), 1U);
}

TEST_F(KeptMappingsTest, AreBoundedWhateverTheValues) {
  for (const auto value : {std::uint64_t{0}, kPage, ~std::uint64_t{0}, kFailed - kPage}) {
    for (const auto length : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      for (const auto kind :
           {Kind::kMap, Kind::kUnmap, Kind::kRemap, Kind::kBreak, Kind::kProtect}) {
        (void)call(kind, {value, length, kReadWrite}, value);
        (void)call(kind, {value, length, length}, kPage);
      }
    }
  }
  kept_.complete(young_since_);
  EXPECT_LE(kept_.kept(), kept_.mapped());
}

}  // namespace
}  // namespace pyinject::weave
