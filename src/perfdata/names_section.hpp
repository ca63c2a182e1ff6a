// The feature of this tool that holds the names of a recording: ELF images, each a zstd frame of
// its own, so that sections can be joined. Pure.
#pragma once

#include "perfdata/record.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pyinject::perfdata {

// Bytes of all images of a file, not compressed: limits the memory of its readers.
inline constexpr std::uint64_t kMostNames = std::uint64_t{128} << 20U;

// Appends IMAGE to SECTION. False: no memory; nothing is appended.
[[nodiscard]] bool append_image(Bytes image, std::vector<std::byte>& section);

// The images of SECTION, up to the damage or a limit: kMostNames, or 65,536 of them.
[[nodiscard]] std::vector<std::vector<std::byte>> parse_images(Bytes section);

}  // namespace pyinject::perfdata
