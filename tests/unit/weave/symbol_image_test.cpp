#include "pyinject/weave/symbol_image.hpp"

#include "base/text.hpp"
#include "elf/elf_file.hpp"
#include "pyinject/base/error.hpp"
#include "weave/sha1.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string sha1_of(std::string_view text) {
  return base::hexadecimal(sha1(std::as_bytes(std::span{text})));
}

// Examples of FIPS 180-4, and lengths around the end of a block from coreutils' sha1sum.
TEST(Sha1, IsTheStandards) {
  EXPECT_EQ(sha1_of(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_of("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1_of(std::string(55, 'x')), "cef734ba81a024479e09eb5a75b6ddae62e6abf1");
  EXPECT_EQ(sha1_of(std::string(64, 'x')), "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163");
  EXPECT_EQ(sha1_of(std::string(1000, 'x')), "c3efa690fa3fdd2e2526853eed670538ea127638");
}

elf::ElfFile opened(const SymbolImage& image) {
  base::UniqueFd fd{::memfd_create("image", MFD_CLOEXEC)};
  EXPECT_EQ(::write(fd.get(), image.bytes.data(), image.bytes.size()),
            static_cast<ssize_t>(image.bytes.size()));
  auto file = elf::ElfFile::open(std::move(fd));
  if (const auto* why = std::get_if<elf::NotElf>(&file)) {
    throw base::Error{why->why};
  }
  return std::get<elf::ElfFile>(std::move(file));
}

elf::Symbol symbol_of(const elf::ElfFile& file, std::string_view name) {
  const auto found = file.find_symbols(std::array{name});
  return found.empty() ? elf::Symbol{} : found.begin()->second;
}

const std::array known_ranges = {AddressRange{0x7f0000010000, 0x7f0000020000},
                                 AddressRange{0x10000000000, 0x10000001000},
                                 AddressRange{0x7f0000020000, 0x7f0000030000}};
const std::array known_symbols = {
    ImageSymbol{.address = 0x7f0000010000, .size = 32, .name = "py::first:/a b/c.py"},
    ImageSymbol{.address = 0x7f0000020020, .size = 0, .name = "py::<module>:/x.py:12"},
    ImageSymbol{.address = 0x10000000fff, .size = 1, .name = "py::last:/x.py"},
    ImageSymbol{.address = 0x10000001000, .size = 1, .name = "outside"},
    ImageSymbol{.address = 0x10, .size = 1, .name = "before"}};

TEST(SymbolImage, HasTheProcessesAddressesInMemoryAndInTheFile) {
  const SymbolImage image = make_symbol_image(known_symbols, known_ranges);
  const auto file = opened(image);
  EXPECT_EQ(file.type(), elf::ElfType::kDynamic);
  EXPECT_EQ(file.build_id(), base::hexadecimal(image.build_id));
  EXPECT_EQ(image.build_id.size(), 20U);
  std::vector<AddressRange> loads;
  for (const elf::Segment& segment : file.segments()) {
    if (segment.is_load()) {
      EXPECT_EQ(segment.offset, segment.address.value());
      EXPECT_TRUE(segment.executable());
      loads.push_back({segment.address.value(), segment.address.value() + segment.memory_size});
    }
  }
  EXPECT_THAT(loads, ElementsAre(AddressRange{0x10000000000, 0x10000001000},
                                 AddressRange{0x7f0000010000, 0x7f0000030000}));
  EXPECT_EQ(symbol_of(file, "py::first:/a b/c.py"),
            (elf::Symbol{base::ElfAddress{0x7f0000010000}, 32}));
  EXPECT_EQ(symbol_of(file, "py::<module>:/x.py:12"),
            (elf::Symbol{base::ElfAddress{0x7f0000020020}, 0}));
  EXPECT_EQ(symbol_of(file, "py::last:/x.py"), (elf::Symbol{base::ElfAddress{0x10000000fff}, 1}));
  EXPECT_EQ(symbol_of(file, "outside"), elf::Symbol{});
  EXPECT_EQ(symbol_of(file, "before"), elf::Symbol{});
}

TEST(SymbolImage, IsTheSameForTheSameAndHasAnotherBuildIdForAnother) {
  const SymbolImage image = make_symbol_image(known_symbols, known_ranges);
  EXPECT_EQ(make_symbol_image(known_symbols, known_ranges).bytes, image.bytes);
  auto renamed = known_symbols;
  renamed[1].name.back() = '3';
  EXPECT_NE(make_symbol_image(renamed, known_ranges).build_id, image.build_id);
  auto moved = known_ranges;
  moved[1].end += 0x1000;
  EXPECT_NE(make_symbol_image(known_symbols, moved).build_id, image.build_id);
}

TEST(SymbolImage, IsHarmlessIfEmpty) {
  const SymbolImage image = make_symbol_image({}, {});
  EXPECT_THROW((void)opened(image), base::Error);
  const std::array empty = {AddressRange{8, 8}, AddressRange{9, 3}};
  EXPECT_EQ(make_symbol_image(known_symbols, empty).bytes, image.bytes);
}

TEST(SymbolImage, HasNoMoreSectionsThanElfCanCount) {
  std::vector<AddressRange> ranges;
  std::vector<ImageSymbol> symbols;
  for (std::uint64_t i = 1; i <= 70000; ++i) {
    ranges.push_back({i << 17U, (i << 17U) + 0x10000});
    symbols.push_back({.address = i << 17U, .size = 16, .name = fmt::format("py::f{}:/x.py", i)});
  }
  const auto file = opened(make_symbol_image(symbols, ranges));
  for (const int i : {1, 60000, 70000}) {
    const auto name = fmt::format("py::f{}:/x.py", i);
    EXPECT_EQ(symbol_of(file, name).address.value(), static_cast<std::uint64_t>(i) << 17U);
  }
}

TEST(SymbolImage, ProvesItsBuildId) {
  const std::array symbols{
      ImageSymbol{.address = 0x1000, .size = 16, .name = "py::f:/a.py", .file = "/a.py"}};
  const std::array ranges{AddressRange{.begin = 0x1000, .end = 0x2000}};
  auto image = make_symbol_image(symbols, ranges);
  EXPECT_EQ(proven_build_id(image.bytes), image.build_id);
  const auto whole = image.bytes;
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{63}, std::size_t{130}, whole.size() - 1}) {
    image.bytes.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THAT(proven_build_id(image.bytes), IsEmpty()) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {  // also those of the build-id itself
    image.bytes = whole;
    image.bytes[at] ^= std::byte{1};
    EXPECT_THAT(proven_build_id(image.bytes), IsEmpty()) << "byte " << at;
  }
}

}  // namespace
}  // namespace pyinject::weave
