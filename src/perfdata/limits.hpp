// Sizes shared by readers and writers of records, in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyinject::perfdata {

inline constexpr std::size_t kWord = sizeof(std::uint64_t);
// A record's size has 16 bits and is a multiple of a word.
inline constexpr std::size_t kMostRecord = 65528;
inline constexpr std::size_t kMostBuildId = 20;

}  // namespace pyinject::perfdata
