// Sizes that reading and writing records share, in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyinject::perfdata {

inline constexpr std::size_t kWord = sizeof(std::uint64_t);
// A record's size is a number of 16 bits, and whole words.
inline constexpr std::size_t kMostRecord = 65528;
inline constexpr std::size_t kMostBuildId = 20;

}  // namespace pyinject::perfdata
