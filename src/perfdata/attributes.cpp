#include "perfdata/attributes.hpp"

#include "perfdata/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace pyinject::perfdata {

namespace {

constexpr std::uint64_t kKnownSampleBits = PERF_SAMPLE_MAX - 1U;
constexpr std::uint64_t kKnownReadBits = PERF_FORMAT_MAX - 1U;
// The last known is PERF_SAMPLE_BRANCH_COUNTERS, 1 << 19, linux 6.8.
constexpr std::uint64_t kKnownBranchBits = (1U << 20U) - 1;
// perf_event_attr.defer_callchain, linux 6.19: the first bit behind those of Debian 12's header.
constexpr std::uint64_t kDeferCallchain = 1;

std::optional<UnsupportedFile> check_joinable(const Event& event) {
  const auto& attr = event.attr;
  if (event.samples(PERF_SAMPLE_AUX)) {
    return UnsupportedFile{"its samples hold AUX data"};
  }
  if ((attr.__reserved_1 & kDeferCallchain) != 0) {
    return UnsupportedFile{"its user call chains are deferred to records of their own"};
  }
  const auto unknown = [](const char* what, std::uint64_t bits) {
    return UnsupportedFile{fmt::format("its {} has bits that are not known ({:#x})", what, bits)};
  };
  if ((attr.sample_type & ~kKnownSampleBits) != 0) {
    return unknown("sample_type", attr.sample_type & ~kKnownSampleBits);
  }
  if (event.samples(PERF_SAMPLE_READ) && (attr.read_format & ~kKnownReadBits) != 0) {
    return unknown("read_format", attr.read_format & ~kKnownReadBits);
  }
  if (event.samples(PERF_SAMPLE_BRANCH_STACK) &&
      (attr.branch_sample_type & ~kKnownBranchBits) != 0) {
    return unknown("branch_sample_type", attr.branch_sample_type & ~kKnownBranchBits);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> attributes_size(Bytes bytes) {
  if (bytes.size() < PERF_ATTR_SIZE_VER0) {
    return std::nullopt;
  }
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data() + offsetof(perf_event_attr, size), sizeof size);
  size = size == 0 ? PERF_ATTR_SIZE_VER0 : size;
  if (size < PERF_ATTR_SIZE_VER0 || size % 8 != 0 || size > bytes.size()) {
    return std::nullopt;
  }
  return size;
}

perf_event_attr to_attributes(Bytes raw) {
  perf_event_attr attr{};
  std::memcpy(&attr, raw.data(), std::min(raw.size(), sizeof attr));
  return attr;
}

void remove_user_stacks(std::span<std::byte> raw) {
  auto attr = to_attributes(raw);
  constexpr std::uint64_t kBoth = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  if ((attr.sample_type & kBoth) != kBoth) {
    return;
  }
  attr.sample_type &= ~kBoth;
  attr.sample_regs_user = 0;
  attr.sample_stack_user = 0;
  attr.exclude_callchain_user = 0;
  std::memcpy(raw.data(), &attr, std::min(raw.size(), sizeof attr));
}

void add_switch_periods(std::span<std::byte> raw) {
  Event event{.attr = to_attributes(raw), .raw = {}, .ids = {}};
  if (event.samples_each_switch()) {
    event.attr.sample_type |= PERF_SAMPLE_PERIOD;
    std::memcpy(raw.data(), &event.attr, std::min(raw.size(), sizeof event.attr));
  }
}

std::optional<UnsupportedFile> check_joinable(const std::vector<Event>& events) {
  if (events.empty()) {
    return UnsupportedFile{"it has no events"};
  }
  for (const Event& event : events) {
    if (auto objection = check_joinable(event)) {
      return objection;
    }
  }
  // Whose record it is has to be known before the record can be taken apart.
  const auto first = IdPosition::of(events.front().attr);
  const bool same = std::ranges::all_of(
      events, [&](const Event& event) { return IdPosition::of(event.attr) == first; });
  if (events.size() > 1 && !(same && first.in_sample)) {
    return UnsupportedFile{"nothing tells the samples of its events apart"};
  }
  return std::nullopt;
}

}  // namespace pyinject::perfdata
