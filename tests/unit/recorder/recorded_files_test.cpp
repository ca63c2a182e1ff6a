#include "recorder/recorded_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>

namespace pyinject::recorder {
namespace {

TEST(RecordedFilesOfARecording, FindTheKernelsBuildId) {
  constexpr auto kNotes = std::to_array<std::uint8_t>({
      4, 0, 0,   0,   2,   0, 0,    0,    9,    0,
      0, 0, 'X', 'e', 'n', 0, 1,    2,    0,    0,  // another one, padded
      4, 0, 0,   0,   4,   0, 0,    0,    3,    0,
      0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 1,
  });
  const auto notes = std::as_bytes(std::span{kNotes});
  EXPECT_THAT(kernel_build_id(notes), testing::ElementsAre(std::byte{0xab}, std::byte{0xcd},
                                                           std::byte{0xef}, std::byte{1}));
  for (std::size_t size = 0; size < notes.size(); ++size) {
    EXPECT_TRUE(kernel_build_id(notes.first(size)).empty()) << size;
  }
}

}  // namespace
}  // namespace pyinject::recorder
