#include "perfdata/corrected_header.hpp"

#include "perfdata/limits.hpp"

#include <algorithm>
#include <cstring>

namespace pyinject::perfdata {

namespace {

bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// Decides whether a mapping has a build id, followed by zeros, or device numbers (major first) and
// inode.
bool has_build_id(Bytes record, bool asked_for) {
  constexpr std::size_t kPlace = 40;  // perf_event_open(2)
  constexpr std::size_t kBuildId = 4;
  constexpr std::uint8_t kShortest = 16;  // shortest one that linkers make by default
  if (record.size() < kPlace + kBuildId + kMostBuildId) {
    return true;  // damaged
  }
  const auto size = std::to_integer<std::uint8_t>(record[kPlace]);
  const auto id = record.subspan(kPlace + kBuildId, kMostBuildId);
  return size > 0 && size <= kMostBuildId && is_zero(record.subspan(kPlace + 1, 3)) &&
         is_zero(id.subspan(size)) && (asked_for || size >= kShortest);
}

// For records that may be too long: the size before the sample id.
std::optional<std::size_t> content_size(const Record& record) {
  constexpr std::size_t kFixed = 24;  // all of BPF_EVENT; KSYMBOL has a name
  if (record.bytes.size() < kFixed) {
    return std::nullopt;
  }
  if (record.type == PERF_RECORD_BPF_EVENT) {
    return kFixed;
  }
  const auto name = record.bytes.subspan(kFixed);
  const auto end = std::ranges::find(name, std::byte{0});
  if (record.type != PERF_RECORD_KSYMBOL || end == name.end()) {
    return std::nullopt;
  }
  return kFixed + (static_cast<std::size_t>(end - name.begin()) / kWord + 1) * kWord;
}

// The size without leftovers after the sample id.
std::size_t true_size(const Record& record, const std::vector<Event>& events,
                      const EventIndex& index) {
  auto result = record.bytes.size();
  const auto content = content_size(record);
  for (const Event& event : events) {
    const auto size = content.value_or(result) + sample_id_size(event.attr);
    if (size > record.bytes.size() ||
        index.event_of(
            {.type = record.type, .misc = record.misc, .bytes = record.bytes.first(size)}) !=
            &event) {
      continue;
    }
    if (size == record.bytes.size()) {
      return size;
    }
    result = size;
  }
  return result;
}

}  // namespace

std::optional<perf_event_header> corrected_header(const Record& record,
                                                  const std::vector<Event>& events,
                                                  const EventIndex& index) {
  perf_event_header header{.type = record.type,
                           .misc = record.misc,
                           .size = static_cast<std::uint16_t>(record.bytes.size())};
  if (record.type == PERF_RECORD_KSYMBOL || record.type == PERF_RECORD_BPF_EVENT) {
    header.size = static_cast<std::uint16_t>(true_size(record, events, index));
  } else if (record.type == PERF_RECORD_MMAP2 &&
             (record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    const bool asked_for =
        std::ranges::any_of(events, [](const Event& event) { return event.attr.build_id != 0; });
    if (!has_build_id(record.bytes, asked_for)) {
      header.misc = static_cast<std::uint16_t>(header.misc & ~PERF_RECORD_MISC_MMAP_BUILD_ID);
    }
  }
  return header.size == record.bytes.size() && header.misc == record.misc ? std::nullopt
                                                                          : std::optional{header};
}

}  // namespace pyinject::perfdata
