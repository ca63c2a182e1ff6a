#include "elf/load_bias.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include <elf.h>

namespace pyinject::elf {
namespace {

using base::ElfAddress;
using base::LoadBias;
using base::RemoteAddress;

Segment load(std::uint32_t flags, std::uint64_t offset, std::uint64_t address,
             std::uint64_t file_size) {
  return {.type = PT_LOAD,
          .flags = flags,
          .address = ElfAddress{address},
          .memory_size = file_size,
          .offset = offset,
          .file_size = file_size,
          .align = 0x1000};
}

// A library: headers, text, read-only data, and data that starts in the middle of a page.
const std::array kLibrary{load(PF_R, 0, 0, 0x7f10), load(PF_R | PF_X, 0x8000, 0x8000, 0x2a00),
                          load(PF_R, 0xb000, 0xb000, 0x1d80),
                          load(PF_R | PF_W, 0xcd80, 0xdd80, 0x900)};

TEST(LoadBias, IsTheSameFromEveryMappingOfAPieOrLibrary) {
  const LoadBias bias{0x7f0000000000};
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x7f0000000000}, 0, false), bias);
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x7f0000008000}, 0x8000, true), bias);
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x7f000000b000}, 0xb000, false), bias);
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x7f000000d000}, 0xc000, false), bias)
      << "the data segment starts there, read-only data ends there";
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x7f000000e000}, 0xd000, false), bias)
      << "the part after PT_GNU_RELRO";
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x7f0000009000}, 0x9000, false), bias)
      << "a page of the text that was mprotected";
}

TEST(LoadBias, IsZeroForAnExecutableAtItsOwnAddress) {
  const std::array executable{load(PF_R, 0, 0x400000, 0x500),
                              load(PF_R | PF_X, 0x1000, 0x401000, 0x900)};
  EXPECT_EQ(load_bias(executable, RemoteAddress{0x401000}, 0x1000, true), LoadBias{0});
}

TEST(LoadBias, MayBeNegativeForAPrelinkedLibrary) {
  const std::array library{load(PF_R | PF_X, 0, 0x7f0000000000, 0x900)};
  EXPECT_EQ(load_bias(library, RemoteAddress{0x10000}, 0, true),
            LoadBias{std::uint64_t{0x10000} - 0x7f0000000000});
}

TEST(LoadBias, TellsSegmentsInOnePageApartByExecutability) {
  const std::array tiny{load(PF_R | PF_X, 0, 0, 0x400), load(PF_R | PF_W, 0x400, 0x1400, 0x100)};
  EXPECT_EQ(load_bias(tiny, RemoteAddress{0x10000}, 0, true), LoadBias{0x10000});
  EXPECT_EQ(load_bias(tiny, RemoteAddress{0x11000}, 0, false), LoadBias{0x10000});
}

TEST(LoadBias, IsUnknownForAMappingOfSomethingElse) {
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x1000}, 0xe000, false), std::nullopt);
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x1001}, 0, false), std::nullopt);
  EXPECT_EQ(load_bias(kLibrary, RemoteAddress{0x1000}, 1, false), std::nullopt);
  EXPECT_EQ(load_bias({}, RemoteAddress{0x1000}, 0, false), std::nullopt);
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  const std::array broken{load(PF_R, 0x123, 0x456, 0x1000), load(PF_R, kHuge, kHuge, kHuge),
                          load(PF_R, 0x1000, 0, 0)};
  EXPECT_EQ(load_bias(broken, RemoteAddress{0x1000}, 0, false), std::nullopt);
  EXPECT_EQ(load_bias(broken, RemoteAddress{0x1000}, 0x1000, false), std::nullopt);
}

}  // namespace
}  // namespace pyinject::elf
