#include "elf/frame_pointers.hpp"

#include "base/file.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <fcntl.h>
#include <sys/mman.h>

namespace pyinject::elf {
namespace {

std::string library(const std::string& kind) {
  return base::read_file(test::targets_dir() + "/frames_" + kind + ".so").value_or("");
}

std::variant<ElfFile, NotElf> open_bytes(std::string_view bytes) {
  base::UniqueFd file{::memfd_create("elf", MFD_CLOEXEC)};
  base::write_all(file.get(), bytes, "a memfd");
  return ElfFile::open(std::move(file));
}

std::optional<double> share_of(std::string_view bytes) {
  const auto opened = open_bytes(bytes);
  const auto* const elf = std::get_if<ElfFile>(&opened);
  return elf == nullptr ? std::nullopt : frame_pointer_share(*elf);
}

TEST(FramePointers, AreSeenInAStrippedFile) {
  EXPECT_EQ(share_of(library("keep")), 1.0);
  EXPECT_EQ(share_of(library("omit")), 0.0);
  const auto keep = open_bytes(library("keep"));
  EXPECT_TRUE(keeps_frame_pointers(std::get<ElfFile>(keep)));
  const auto omit = open_bytes(library("omit"));
  EXPECT_FALSE(keeps_frame_pointers(std::get<ElfFile>(omit)));
}

TEST(FramePointers, SurviveDamagedUnwindInformation) {
  const auto whole = library("keep");
  const auto opened = open_bytes(whole);
  const auto* const elf = std::get_if<ElfFile>(&opened);
  ASSERT_NE(elf, nullptr);
  int judged = 0;
  for (const auto* const name : {".eh_frame", ".eh_frame_hdr"}) {
    const auto section = elf->section(name);
    ASSERT_TRUE(section.has_value()) << name;
    for (std::uint64_t at = 0; at < section->size; ++at) {
      for (const char value : {'\x00', '\x01', '\x7f', '\x80', '\xff'}) {
        auto damaged = whole;
        damaged.at(static_cast<std::size_t>(section->offset + at)) = value;
        const auto share = share_of(damaged);
        judged += share ? 1 : 0;
        EXPECT_THAT(share.value_or(0), testing::AllOf(testing::Ge(0.0), testing::Le(1.0)));
      }
    }
  }
  EXPECT_GT(judged, 0) << "no damaged file was judged";
}

TEST(FramePointers, AreUnknownWithoutUnwindInformation) {
  auto bytes = library("keep");
  // Damage only the section's name.
  for (auto at = bytes.find(".eh_frame"); at != std::string::npos; at = bytes.find(".eh_frame")) {
    bytes.at(at + 1) = 'x';
  }
  EXPECT_EQ(share_of(bytes), std::nullopt);
}

}  // namespace
}  // namespace pyinject::elf
