#include "perfdata/attributes.hpp"

#include "perfdata/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace pyinject::perfdata {

namespace {

constexpr std::uint64_t kKnownSampleBits = PERF_SAMPLE_MAX - 1U;
constexpr std::uint64_t kKnownReadBits = PERF_FORMAT_MAX - 1U;
// The last known bit is PERF_SAMPLE_BRANCH_COUNTERS, 1 << 19, linux 6.8.
constexpr std::uint64_t kKnownBranchBits = (1U << 20U) - 1;
// The bits of perf_event_attr are in one word, which follows read_format. Debian 12's header lacks
// those of linux 6.19.
constexpr std::size_t kBits = offsetof(perf_event_attr, read_format) + sizeof(std::uint64_t);
constexpr std::uint64_t kDeferCallchain = std::uint64_t{1} << 38U;
constexpr std::uint64_t kDeferOutput = std::uint64_t{1} << 39U;

std::uint64_t bits_of(const perf_event_attr& attr) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const std::byte*>(&attr) + kBits, sizeof bits);
  return bits;
}

std::optional<UnsupportedFile> check_joinable(const Event& event) {
  const auto& attr = event.attr;
  if (event.samples(PERF_SAMPLE_AUX)) {
    return UnsupportedFile{"its samples hold AUX data"};
  }
  const auto unknown = [](const char* what, std::uint64_t bits) {
    return UnsupportedFile{fmt::format("its {} has unknown bits ({:#x})", what, bits)};
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

void remove_deferral(std::span<std::byte> raw) {
  if (raw.size() < kBits + sizeof(std::uint64_t)) {
    return;
  }
  const auto bits = bits_of(to_attributes(raw)) & ~(kDeferCallchain | kDeferOutput);
  std::memcpy(raw.data() + kBits, &bits, sizeof bits);
}

bool Event::defers_user_chains() const { return (bits_of(attr) & kDeferCallchain) != 0; }

bool Event::is_caused_by_code() const {
  static constexpr std::array<std::string_view, 7> kSystems{
      "syscalls:", "raw_syscalls:", "exceptions:", "filemap:", "ext4:", "xfs:", "btrfs:"};
  switch (attr.type) {
    case PERF_TYPE_SOFTWARE:
      return attr.config == PERF_COUNT_SW_PAGE_FAULTS ||
             attr.config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
             attr.config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
    case PERF_TYPE_TRACEPOINT:
      return std::ranges::any_of(
          kSystems, [this](std::string_view system) { return name.starts_with(system); });
    default:
      return false;
  }
}

void add_period(std::span<std::byte> raw, const std::function<bool(const Event&)>& takes_period) {
  Event event{.attr = to_attributes(raw), .raw = {}, .ids = {}};
  if (takes_period(event)) {
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
  // The event of a record must be known before the record can be parsed.
  const auto first = IdPosition::of(events.front().attr);
  const bool same = std::ranges::all_of(
      events, [&](const Event& event) { return IdPosition::of(event.attr) == first; });
  if (events.size() > 1 && !(same && first.in_sample)) {
    return UnsupportedFile{"its samples do not say to which event they belong"};
  }
  return std::nullopt;
}

}  // namespace pyinject::perfdata
