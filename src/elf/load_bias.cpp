#include "elf/load_bias.hpp"

namespace pyinject::elf {

namespace {

constexpr std::uint64_t kPage = 4096;  // x86-64: what the loader rounds to, whatever p_align says

constexpr std::uint64_t round_down(std::uint64_t value) { return value / kPage * kPage; }

// Could the loader have made a mapping at FILE_OFFSET from it?
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

}  // namespace pyinject::elf
