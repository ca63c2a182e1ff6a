#include "record/malloc_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <elf.h>

namespace pyinject::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

elf::UsdtProbe probe(const std::string& name, std::uint64_t at, const std::string& arguments) {
  return {.provider = "otel_memory",
          .name = name,
          .location = base::ElfAddress{at},
          .semaphore = base::ElfAddress{0},
          .arguments = arguments};
}

class AllocatorPlacesTest : public testing::Test {
 protected:
  [[nodiscard]] AllocatorPlaces of(const std::vector<elf::UsdtProbe>& probes) const {
    return allocator_places(probes, {&segment_, 1});
  }
  const elf::Segment segment_{.type = PT_LOAD,
                              .flags = PF_R | PF_X,
                              .address = base::ElfAddress{0x1100},
                              .memory_size = 0x1000,
                              .offset = 0x100,
                              .file_size = 0x1000,
                              .align = 1};
};

TEST_F(AllocatorPlacesTest, FetchTheBlockAndWhatItStandsFor) {
  auto alloc = probe("alloc", 0x1200, "8@%rdi -8@%rsi 8@8(%rsp)");
  alloc.semaphore = base::ElfAddress{0x1300};
  const auto found = of({probe("other", 0x1800, ""), alloc, probe("free", 0x1400, "8@%rax")});
  EXPECT_THAT(found.lack, IsEmpty());
  ASSERT_EQ(found.places.size(), 2U);
  EXPECT_EQ(found.places[0].name, "heap_alloc");
  EXPECT_EQ(found.places[0].offset, 0x200U);
  EXPECT_EQ(found.places[0].counter_offset, 0x300U);
  EXPECT_EQ(found.places[0].arguments, "ptr=%di:u64 size=%si:u64 weight=+8(%sp):u64");
  EXPECT_EQ(found.places[1].name, "heap_free");
  EXPECT_EQ(found.places[1].arguments, "ptr=%ax:u64");
}

TEST_F(AllocatorPlacesTest, AreNoneOfOtherProviders) {
  auto other = probe("alloc", 0x1200, "8@%rdi 8@%rsi 8@%rdx");
  other.provider = "libc";
  EXPECT_THAT(of({other}).places, IsEmpty());
  EXPECT_THAT(of({other}).lack, IsEmpty());
}

TEST_F(AllocatorPlacesTest, CannotBeUsedIfSomethingIsMissing) {
  const auto alloc = probe("alloc", 0x1200, "8@%rdi 8@%rsi 8@%rdx");
  const auto free = probe("free", 0x1400, "8@%rdi");
  EXPECT_THAT(of({alloc, free}).lack, IsEmpty());
  EXPECT_THAT(of({alloc}).lack, HasSubstr("not both"));
  EXPECT_THAT(of({alloc, probe("free", 0x1400, "8@$5")}).lack, HasSubstr("'8@$5'"));
  EXPECT_THAT(of({probe("alloc", 0x1200, "8@%rdi 8@%rsi"), free}).lack,
              HasSubstr("cannot fetch the arguments of its probe alloc"));
  EXPECT_THAT(of({alloc, probe("free", 0x9000, "8@%rdi")}).places, IsEmpty());
}

}  // namespace
}  // namespace pyinject::record
