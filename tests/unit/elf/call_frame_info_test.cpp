#include "elf/call_frame_info.hpp"

#include "support/paths.hpp"

#include <gtest/gtest.h>

#include <array>

#include <fcntl.h>

namespace pyinject::elf {
namespace {

ElfFile opened(const std::string& path) {
  auto file = ElfFile::open(base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)});
  return std::get<ElfFile>(std::move(file));
}

TEST(CallFrameInfo, FindsTheReturnAddressOnTopAtTheEntryOfAFunction) {
  for (const auto* name : {"/frames_keep.so", "/frames_omit.so"}) {
    const auto file = opened(test::targets_dir() + name);
    const auto info = CallFrameInfo::of(file);
    ASSERT_TRUE(info);
    const auto text = file.section(".text");
    ASSERT_TRUE(text);
    std::size_t entries = 0;
    for (std::uint64_t at = text->address.value(); at < text->address.value() + text->size; ++at) {
      const auto rule = info->rule_at(base::ElfAddress{at});
      if (rule && !rule->from_frame_pointer && rule->frame_offset == 8) {
        EXPECT_EQ(rule->return_address, -8);
        ++entries;
      }
    }
    EXPECT_GT(entries, 0U) << name;
  }
}

TEST(CallFrameInfo, KnowsBuildsWithFramePointers) {
  const auto file = opened(test::targets_dir() + "/frames_keep.so");
  const auto info = CallFrameInfo::of(file);
  ASSERT_TRUE(info);
  const auto text = file.section(".text");
  std::size_t with_frame_pointer = 0;
  for (std::uint64_t at = text->address.value(); at < text->address.value() + text->size; ++at) {
    const auto rule = info->rule_at(base::ElfAddress{at});
    if (rule && rule->from_frame_pointer) {
      EXPECT_EQ(rule->frame_offset, 16);
      EXPECT_EQ(rule->saved_frame_pointer, -16);
      ++with_frame_pointer;
    }
  }
  EXPECT_GT(with_frame_pointer, 0U);
}

TEST(CallFrameInfo, SaysNothingOfAddressesWithoutCode) {
  const auto file = opened(test::targets_dir() + "/frames_keep.so");
  const auto info = CallFrameInfo::of(file);
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->rule_at(base::ElfAddress{0}));
  EXPECT_FALSE(info->rule_at(base::ElfAddress{~std::uint64_t{0}}));
}

}  // namespace
}  // namespace pyinject::elf
