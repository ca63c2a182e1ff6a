#include "elf/load_bias.hpp"

#include <algorithm>

namespace pyinject::elf {

namespace {

constexpr std::uint64_t kPage = 4096;  // x86-64: the loader's rounding, whatever p_align is

constexpr std::uint64_t round_down(std::uint64_t value) { return value / kPage * kPage; }

// Whether the loader could have created a mapping at FILE_OFFSET from SEGMENT.
bool shows(const Segment& segment, std::uint64_t file_offset) {
  const std::uint64_t first = round_down(segment.offset);
  const std::uint64_t used = segment.offset - first + segment.file_size;
  const bool sane = segment.file_size != 0 && used >= segment.file_size &&
                    (segment.address.value() - segment.offset) % kPage == 0;
  return segment.is_load() && sane && file_offset >= first && file_offset - first < used;
}

}  // namespace

std::optional<base::LoadBias> load_bias(std::span<const Segment> segments,
                                        base::RemoteAddress begin, std::uint64_t file_offset,
                                        bool executable) {
  if (begin.value() % kPage != 0 || file_offset % kPage != 0) {
    return std::nullopt;
  }
  const Segment* best = nullptr;
  int best_rank = -1;
  for (const Segment& segment : segments) {
    const int rank = (segment.executable() == executable ? 2 : 0) +
                     (round_down(segment.offset) == file_offset ? 1 : 0);
    if (shows(segment, file_offset) && rank > best_rank) {
      best = &segment;
      best_rank = rank;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  return base::LoadBias{begin.value() - (best->address.value() - best->offset + file_offset)};
}

FileStart start_of(std::span<const Segment> segments, base::LoadBias bias) {
  const auto first = std::ranges::find_if(segments, &Segment::is_load);
  return first == segments.end()
             ? FileStart{}
             : FileStart{.address = bias.apply(first->address), .offset = first->offset};
}

}  // namespace pyinject::elf
