#include "perfdata/names_section.hpp"

#include <zstd.h>

namespace pyinject::perfdata {

namespace {

constexpr int kLevel = 3;                       // zstd's default: 500 MB/s
constexpr std::size_t kMostImages = 1U << 16U;  // one for each process, and one for all of them

}  // namespace

bool append_image(Bytes image, std::vector<std::byte>& section) {
  const auto before = section.size();
  section.resize(before + ZSTD_compressBound(image.size()));
  const auto size = ZSTD_compress(section.data() + before, section.size() - before, image.data(),
                                  image.size(), kLevel);
  const bool done = ZSTD_isError(size) == 0;
  section.resize(done ? before + size : before);
  return done;
}

std::vector<std::vector<std::byte>> parse_images(Bytes section) {
  std::vector<std::vector<std::byte>> images;
  std::uint64_t left = kMostNames;
  while (!section.empty()) {
    const auto frame = ZSTD_findFrameCompressedSize(section.data(), section.size());
    const auto size = ZSTD_getFrameContentSize(section.data(), section.size());
    // The two errors are the largest numbers.
    if (ZSTD_isError(frame) != 0 || size > left || images.size() == kMostImages) {
      break;
    }
    std::vector<std::byte> image(size);
    if (ZSTD_decompress(image.data(), image.size(), section.data(), frame) != size) {
      break;
    }
    left -= size;
    images.push_back(std::move(image));
    section = section.subspan(frame);
  }
  return images;
}

}  // namespace pyinject::perfdata
