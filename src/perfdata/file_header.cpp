#include "perfdata/file_header.hpp"

#include "perfdata/attributes.hpp"
#include "perfdata/event_description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace pyinject::perfdata {

namespace {

// Real files have some dozens of events, each with an id per thread and processor.
constexpr std::uint64_t kMostAttributes = std::uint64_t{4} << 20U;  // bytes
constexpr std::uint64_t kMostIds = std::uint64_t{8} << 20U;
constexpr std::uint64_t kMostDescription = std::uint64_t{80} << 20U;  // bytes

using Objection = std::optional<UnsupportedFile>;

UnsupportedFile damaged(std::string_view what) {
  return {fmt::format("its header is damaged ({})", what)};
}

class HeaderReader {
 public:
  HeaderReader(int fd, std::uint64_t file_size, const std::string& name)
      : fd_{fd}, file_size_{file_size}, name_{name} {}

  Objection read(PerfState perf) {
    if (auto objection = read_start()) {
      return objection;
    }
    if (auto objection = perf == PerfState::kDone   ? read_rest()
                         : perf == PerfState::kDead ? take_rest()
                                                    : std::nullopt) {
      return objection;
    }
    if (auto objection = read_events()) {
      return objection;
    }
    return check_joinable(header_.events);
  }
  [[nodiscard]] FileHeader take() { return std::move(header_); }

 private:
  // Reads all of SECTION, or nothing.
  template <typename Element>
  [[nodiscard]] std::optional<std::vector<Element>> contents(Section section, std::uint64_t most) {
    if (!section.lies_in(file_size_) || section.size > most ||
        section.size % sizeof(Element) != 0) {
      return std::nullopt;
    }
    std::vector<Element> elements(section.size / sizeof(Element));
    const auto bytes = std::as_writable_bytes(std::span{elements});
    return read_at(fd_, section.offset, bytes, name_) == bytes.size() ? std::optional{elements}
                                                                      : std::nullopt;
  }

  Objection read_start() {
    const auto bytes = std::as_writable_bytes(std::span{&start_, 1});
    const auto got = read_at(fd_, 0, bytes, name_);
    const std::string_view magic{start_.magic.data(), start_.magic.size()};
    if (got >= sizeof start_.magic && magic == "2ELIFREP") {
      return UnsupportedFile{"it is from a machine of the other byte order"};
    }
    if (got < sizeof start_.magic || start_.magic != kMagic) {
      return UnsupportedFile{"it is not a perf.data file (format 2)"};
    }
    if (start_.size == 16) {
      return UnsupportedFile{"perf wrote it to a pipe (-o -)"};
    }
    if (got < sizeof start_ || start_.size != sizeof start_) {
      return damaged("its size");
    }
    header_.data = start_.data;
    return std::nullopt;
  }

  // Reads what perf writes when it exits.
  Objection read_rest() {
    if (start_.data.size == 0) {
      return UnsupportedFile{"perf record did not finish writing it"};
    }
    return start_.data.lies_in(file_size_) ? read_features() : damaged("data section");
  }

  // Without a record count: takes the rest of the file as records.
  Objection take_rest() {
    if (start_.data.size != 0) {
      return UnsupportedFile{"perf record completed it"};
    }
    if (start_.data.offset > file_size_) {
      return damaged("data section");
    }
    header_.data.size = file_size_ - start_.data.offset;
    return std::nullopt;
  }

  // The feature sections are listed after the data.
  Objection read_features() {
    for (unsigned bit = 0; bit < kFeatureBits; ++bit) {
      if ((start_.features.at(bit / 64) >> (bit % 64) & 1U) != 0) {
        header_.features.push_back({.bit = bit, .section = {}});
      }
    }
    const Section table{.offset = start_.data.end(),
                        .size = header_.features.size() * sizeof(Section)};
    const auto sections = contents<Section>(table, table.size);
    if (!sections) {
      return damaged("table of features");
    }
    for (std::size_t i = 0; i < sections->size(); ++i) {
      header_.features[i].section = (*sections)[i];
    }
    add_own_features();
    // They must not overlap: otherwise a small file could grow into a large one.
    std::uint64_t left = file_size_;
    for (const auto& feature : header_.features) {
      if (!feature.section.lies_in(file_size_) || feature.section.size > left) {
        return damaged(fmt::format("feature {}", feature.bit));
      }
      left -= feature.section.size;
      if (feature.bit == kFeatureAuxtrace) {
        // The number of entries comes first; a copy of perf's has no mark.
        const auto entries = contents<std::uint64_t>(feature.section, kNoAuxtrace.size());
        if (!entries || entries->empty() || entries->front() != 0) {
          return UnsupportedFile{"it holds AUX data"};
        }
      }
      if (feature.bit == kFeatureEventDescription) {
        auto description = contents<std::byte>(feature.section, kMostDescription);
        if (!description || !change_all(*description, remove_user_stacks)) {
          return damaged("description of the events");
        }
        header_.event_description = std::move(*description);
      }
    }
    return std::nullopt;
  }

  void add_own_features() {
    const auto end = contents<OwnEnd>(
        {.offset = file_size_ - std::min<std::uint64_t>(file_size_, sizeof(OwnEnd)),
         .size = sizeof(OwnEnd)},
        sizeof(OwnEnd));
    constexpr std::uint64_t kMost = kFeatureBits - kFirstOwnFeature;
    if (!end || end->front().magic != kOwnMagic || end->front().sections > kMost) {
      return;
    }
    const auto size = end->front().sections * sizeof(OwnSection);
    const auto own = contents<OwnSection>(
        {.offset = file_size_ - std::min<std::uint64_t>(file_size_, sizeof(OwnEnd) + size),
         .size = size},
        size);
    for (const auto& [bit, section] : own.value_or(std::vector<OwnSection>{})) {
      const auto number = static_cast<FeatureBit>(bit);
      if (bit >= kFirstOwnFeature && bit < kFeatureBits && !header_.has(number)) {
        header_.features.push_back({.bit = number, .section = section});
      }
    }
    std::ranges::sort(header_.features, {}, &Feature::bit);
  }

  Objection read_events() {
    const auto attributes = contents<std::byte>(start_.attributes, kMostAttributes);
    if (!attributes) {
      return damaged("attributes section");
    }
    std::span<const std::byte> left{*attributes};
    std::uint64_t ids_left = std::min(kMostIds, file_size_ / sizeof(std::uint64_t));
    while (!left.empty()) {
      const auto size = attributes_size(left);
      if (!size || *size + sizeof(Section) != start_.attributes_size ||
          start_.attributes_size > left.size()) {
        return damaged("attributes of an event");
      }
      Section ids;
      std::memcpy(&ids, left.data() + *size, sizeof ids);
      auto numbers = contents<std::uint64_t>(ids, ids_left * sizeof(std::uint64_t));
      if (!numbers) {
        return damaged("ids of an event");
      }
      ids_left -= numbers->size();
      const auto raw = left.first(*size);
      header_.events.push_back({.attr = to_attributes(raw),
                                .raw = {raw.begin(), raw.end()},
                                .ids = std::move(*numbers)});
      left = left.subspan(start_.attributes_size);
    }
    return std::nullopt;
  }

  int fd_;
  std::uint64_t file_size_;
  const std::string& name_;
  FileStart start_;
  FileHeader header_;
};

}  // namespace

std::variant<FileHeader, UnsupportedFile> read_header(int fd, std::uint64_t file_size,
                                                      const std::string& name, PerfState perf) {
  HeaderReader reader{fd, file_size, name};
  if (auto objection = reader.read(perf)) {
    return std::move(*objection);
  }
  auto header = reader.take();
  auto names = event_names(header.event_description);
  for (std::size_t i = 0; i < header.events.size() && names.size() == header.events.size(); ++i) {
    header.events[i].name = std::move(names[i]);
  }
  return header;
}

}  // namespace pyinject::perfdata
