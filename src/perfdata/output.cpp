#include "perfdata/output.hpp"

#include "perfdata/attributes.hpp"
#include "perfdata/build_id_table.hpp"
#include "perfdata/event_description.hpp"
#include "perfdata/input_impl.hpp"
#include "perfdata/limits.hpp"
#include "perfdata/names_section.hpp"
#include "perfdata/record_writer.hpp"
#include "perfdata/stack_counts_section.hpp"
#include "pyinject/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace pyinject::perfdata {

namespace {

constexpr const char* kName = "the new perf.data";
constexpr std::size_t kWriteBuffer = std::size_t{1} << 20U;

template <typename Value>
Bytes bytes_of(const Value& value) {
  return std::as_bytes(std::span{&value, 1});
}

}  // namespace

class Output::Impl {
 public:
  Impl(int fd, const Input& input, TakesPeriod takes_period)
      : fd_{fd}, input_{input}, takes_period_{std::move(takes_period)} {
    buffer_.reserve(kWriteBuffer);
    append(bytes_of(FileStart{}));
    write_attributes();
    start_.data.offset = size();
  }

  void write(const Record& record) {
    if (record.type == PERF_RECORD_SAMPLE) {
      const Event* const event = input_.event_of(record);
      if (event != nullptr &&
          (event->has_user_stacks() || event->defers_user_chains() || takes_period(*event))) {
        throw base::Error{"an unchanged sample does not fit the new perf.data"};
      }
    }
    if (record.type == kHeaderAttr && record.bytes.size() > sizeof(perf_event_header)) {
      scratch_.assign(record.bytes.begin(), record.bytes.end());
      change(std::span{scratch_}.subspan(sizeof(perf_event_header)));
      append(scratch_);
      return;
    }
    append(record.bytes);
  }

  void write_mapping(const Mapping& mapping) {
    make_mapping(mapping, sample_id_size(input_.events().front().attr), scratch_);
    append(scratch_);
  }

  bool write_mapping_like(const Record& like, const Mapping& mapping) {
    const bool made = make_mapping_like(like, mapping, scratch_);
    if (made) {
      append(scratch_);
    }
    return made;
  }

  void write_fork(const Task& task) {
    make_fork(task, sample_id_size(input_.events().front().attr), scratch_);
    append(scratch_);
  }

  void write_command(const Command& command) {
    make_command(command, sample_id_size(input_.events().front().attr), scratch_);
    append(scratch_);
  }

  bool write_command_like(const Record& like, const Command& command) {
    const bool made = make_command_like(like, command, scratch_);
    if (made) {
      append(scratch_);
    }
    return made;
  }

  bool write_sample(const Sample& sample, std::span<const std::uint64_t> chain,
                    std::optional<std::uint64_t> period, std::optional<std::uint64_t> cut_mark) {
    if (!takes_period(*sample.event)) {
      period.reset();
    } else if (!period && !sample.event->samples(PERF_SAMPLE_PERIOD)) {
      period = 1;
    }
    const bool whole = make_sample(sample, chain, scratch_, period, cut_mark);
    if (scratch_.size() > kMostRecord) {
      throw base::Error{"a sample is too large for a period to be added"};
    }
    append(scratch_);
    return whole;
  }

  std::size_t finish(std::span<const BuildId> additional, std::span<const Bytes> images,
                     const StackCounts& counts, const TargetGaps& gaps) {
    start_.data.size = size() - start_.data.offset;
    std::size_t left_out = 0;
    const auto names = compressed(images, left_out);
    write_features(additional, names,
                   counts.all() == 0 && gaps.empty() ? "" : to_section(counts) + to_section(gaps));
    flush();
    start_.magic = kMagic;
    start_.size = sizeof start_;
    write_at(fd_, 0, bytes_of(start_), kName);
    return left_out;
  }

  [[nodiscard]] std::uint64_t size() const { return flushed_ + buffer_.size(); }

 private:
  [[nodiscard]] bool takes_period(const Event& event) const {
    return takes_period_ && takes_period_(event);
  }
  void change(std::span<std::byte> attributes) const {
    remove_user_stacks(attributes);
    remove_deferral(attributes);
    if (takes_period_) {
      add_period(attributes, takes_period_);
    }
  }
  void append(Bytes bytes) {
    if (buffer_.size() + bytes.size() > kWriteBuffer) {
      flush();
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void flush() {
    write_at(fd_, flushed_, buffer_, kName);
    flushed_ += buffer_.size();
    buffer_.clear();
  }

  // In perf's order: the ids, then the attributes with the positions of their ids.
  void write_attributes() {
    std::vector<Section> ids;
    for (const Event& event : input_.events()) {
      const auto bytes = std::as_bytes(std::span{event.ids});
      ids.push_back({.offset = size(), .size = bytes.size()});
      append(bytes);
    }
    start_.attributes.offset = size();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      scratch_ = input_.events()[i].raw;
      change(scratch_);
      append(scratch_);
      append(bytes_of(ids[i]));
      start_.attributes_size = scratch_.size() + sizeof(Section);
    }
    start_.attributes.size = size() - start_.attributes.offset;
  }

  [[nodiscard]] std::vector<std::byte> compressed(std::span<const Bytes> images,
                                                  std::size_t& left_out) const {
    std::uint64_t used = 0;
    for (const auto& image : input_.features().images()) {
      used += image.size();
    }
    std::vector<std::byte> section;
    for (const auto image : images) {
      if (image.size() <= kMostNames - std::min(used, kMostNames) && append_image(image, section)) {
        used += image.size();
      } else {
        ++left_out;
      }
    }
    return section;
  }

  void write_features(std::span<const BuildId> additional, Bytes names, const std::string& counts) {
    auto features = input_.impl().header().features;
    std::erase_if(features, [](const Feature& feature) {
      return feature.bit == kFeatureCompressed || feature.bit == kFeatureFolder;
    });
    if (!additional.empty()) {
      std::erase_if(features,
                    [](const Feature& feature) { return feature.bit == kFeatureAuxtrace; });
      features.push_back({.bit = kFeatureAuxtrace, .section = {}});
    }
    const auto add = [&features](FeatureBit bit) {
      if (std::ranges::find(features, unsigned{bit}, &Feature::bit) == features.end()) {
        features.push_back({.bit = bit, .section = {}});
      }
    };
    if (!additional.empty()) {
      add(kFeatureBuildId);
    }
    if (!names.empty()) {
      add(kFeatureNames);
    }
    if (!counts.empty()) {
      std::erase_if(features,
                    [](const Feature& feature) { return feature.bit == kFeatureStackCounts; });
      add(kFeatureStackCounts);
    }
    std::ranges::sort(features, {}, &Feature::bit);
    const auto for_perf = static_cast<std::size_t>(
        std::ranges::lower_bound(features, unsigned{kFirstOwnFeature}, {}, &Feature::bit) -
        features.begin());
    // Their table precedes them and contains their positions.
    const auto table = size();
    std::vector<Section> sections(features.size());
    append(std::as_bytes(std::span{sections}.first(for_perf)));
    for (std::size_t i = 0; i < features.size(); ++i) {
      const auto [bit, section] = features[i];
      if (i < for_perf) {
        start_.features.at(bit / 64) |= std::uint64_t{1} << (bit % 64);
      }
      sections[i].offset = size();
      if (bit == kFeatureEventDescription) {
        auto description = input_.impl().header().event_description;
        (void)change_all(description, [this](std::span<std::byte> raw) { change(raw); });
        append(description);
      } else {
        copy(section);
      }
      if (bit == kFeatureAuxtrace && section.size == 0) {
        append(std::as_bytes(std::span{kNoAuxtrace}));
      }
      if (bit == kFeatureBuildId) {
        for (const BuildId& id : additional) {
          make_build_id(id, scratch_);
          append(scratch_);
        }
      }
      if (bit == kFeatureNames) {
        append(names);
      }
      if (bit == kFeatureStackCounts) {
        append(std::as_bytes(std::span{counts}));
      }
      sections[i].size = size() - sections[i].offset;
    }
    for (std::size_t i = for_perf; i < features.size(); ++i) {
      append(bytes_of(OwnSection{.bit = features[i].bit, .section = sections[i]}));
    }
    if (for_perf < features.size()) {
      append(bytes_of(OwnEnd{.sections = features.size() - for_perf, .magic = kOwnMagic}));
    }
    flush();
    write_at(fd_, table, std::as_bytes(std::span{sections}.first(for_perf)), kName);
  }

  void copy(Section section) {
    scratch_.resize(std::min<std::uint64_t>(section.size, kWriteBuffer));
    while (section.size != 0) {
      const auto piece =
          std::span{scratch_}.first(std::min<std::uint64_t>(section.size, kWriteBuffer));
      if (read_at(input_.impl().fd(), section.offset, piece, input_.impl().name()) !=
          piece.size()) {
        throw base::Error{input_.impl().name() + " became shorter while it was read"};
      }
      append(piece);
      section.offset += piece.size();
      section.size -= piece.size();
    }
  }

  int fd_;
  const Input& input_;
  TakesPeriod takes_period_;
  FileStart start_;
  std::vector<std::byte> buffer_;  // data after the first flushed_ bytes
  std::uint64_t flushed_ = 0;
  std::vector<std::byte> scratch_;
};

Output::Output(int fd, const Input& input, TakesPeriod takes_period)
    : impl_{std::make_unique<Impl>(fd, input, std::move(takes_period))} {}
Output::~Output() = default;
void Output::write(const Record& record) { impl_->write(record); }
void Output::write_mapping(const Mapping& mapping) { impl_->write_mapping(mapping); }
bool Output::write_mapping_like(const Record& like, const Mapping& mapping) {
  return impl_->write_mapping_like(like, mapping);
}
void Output::write_fork(const Task& task) { impl_->write_fork(task); }
void Output::write_command(const Command& command) { impl_->write_command(command); }
bool Output::write_command_like(const Record& like, const Command& command) {
  return impl_->write_command_like(like, command);
}
bool Output::write_sample(const Sample& sample, std::span<const std::uint64_t> chain,
                          std::optional<std::uint64_t> period,
                          std::optional<std::uint64_t> cut_mark) {
  return impl_->write_sample(sample, chain, period, cut_mark);
}
std::size_t Output::finish(std::span<const BuildId> additional, std::span<const Bytes> images,
                           const StackCounts& counts, const TargetGaps& gaps) {
  return impl_->finish(additional, images, counts, gaps);
}
std::uint64_t Output::size() const { return impl_->size(); }

}  // namespace pyinject::perfdata
