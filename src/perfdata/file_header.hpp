// The header of a perf.data file: where its sections are, its events, its features.
// linux, tools/perf/Documentation/perf.data-file-format.txt; tools/perf/util/header.h.
#pragma once

#include "perfdata/file_access.hpp"
#include "perfdata/input.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::perfdata {

// Bit numbers of features (HEADER_*).
enum FeatureBit : std::uint8_t {
  kFeatureTracingData = 1,
  kFeatureBuildId = 2,
  kFeatureEventDescription = 12,
  kFeatureAuxtrace = 18,
  kFeatureFolder = 24,  // HEADER_DIR_FORMAT: --threads
  kFeatureCompressed = 27,
  kFeatureClockData = 29,
  // This tool's own: the kinds of stacks (stack_counts_section.hpp) and the gaps of targets
  // (target_gaps.hpp), the names (names_section.hpp). perf reads the features below its
  // HEADER_LAST_FEATURE (6.1: 32) and skips all others, but `perf inject` writes all of them again,
  // and crashes on those that it does not know. So the header does not have their bits; OwnTable
  // has their places. Files of before 0.3 have the bits.
  kFirstOwnFeature = 254,
  kFeatureStackCounts = kFirstOwnFeature,
  kFeatureNames = 255,
};
constexpr unsigned kFeatureBits = 256;

// This tool's AUXTRACE: an index without AUX data, and a mark that perf ignores. It makes `perf
// archive` include files that occur only in callchains (docs/perf-notes.md).
constexpr std::array<char, 16> kNoAuxtrace{0,   0,   0,   0,   0,   0,   0,   0,
                                           'p', 'y', 'i', 'n', 'j', 'e', 'c', 't'};

struct Feature {
  unsigned bit = 0;
  Section section;
};

// The end of a file: behind everything that perf reads, an OwnSection for each feature of this
// tool, and this.
struct OwnSection {
  std::uint64_t bit = 0;
  Section section;
};
struct OwnEnd {
  std::uint64_t sections = 0;  // of this number
  std::array<char, 8> magic{};
};
constexpr std::array<char, 8> kOwnMagic{'P', 'Y', 'I', 'N', 'J', 'E', 'C', 'T'};

// struct perf_file_header.
struct FileStart {
  std::array<char, 8> magic{};
  std::uint64_t size = 0;
  std::uint64_t attributes_size = 0;  // of one event, including the section of its ids
  Section attributes;
  Section data;
  Section event_types;  // unused since linux 3.x
  std::array<std::uint64_t, kFeatureBits / 64> features{};
};
static_assert(sizeof(FileStart) == 104);
constexpr std::array<char, 8> kMagic{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'};

struct FileHeader {
  Section data;
  std::vector<Feature> features;  // ordered by bit
  std::vector<Event> events;
  std::vector<std::byte> event_description;  // contents of the feature

  [[nodiscard]] bool has(FeatureBit bit) const {
    return std::ranges::find(features, unsigned{bit}, &Feature::bit) != features.end();
  }
};

enum class PerfState {
  kDone,     // perf has completed the file
  kRunning,  // only the events are read
  kDead,     // perf died: everything after the header is treated as records
};

// Throws SystemError.
[[nodiscard]] std::variant<FileHeader, UnsupportedFile> read_header(int fd, std::uint64_t file_size,
                                                                    const std::string& name,
                                                                    PerfState perf);

}  // namespace pyinject::perfdata
