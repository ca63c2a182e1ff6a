#include "perfdata/identity.hpp"

#include "perfdata/limits.hpp"

#include <bit>
#include <cstring>

namespace pyinject::perfdata {

namespace {

// Number of BITS set in this event's sample_type; each takes a word.
unsigned words(const perf_event_attr& attr, std::uint64_t bits) {
  return static_cast<unsigned>(std::popcount(attr.sample_type & bits));
}

std::optional<std::uint64_t> word_at(Bytes bytes, std::size_t offset) {
  std::uint64_t value = 0;
  if (bytes.size() < sizeof(perf_event_header) + kWord || offset < sizeof(perf_event_header) ||
      offset > bytes.size() - kWord) {
    return std::nullopt;
  }
  std::memcpy(&value, bytes.data() + offset, kWord);
  return value;
}

std::optional<std::uint64_t> word_from_end(Bytes bytes, std::size_t number) {
  return number * kWord > bytes.size() ? std::nullopt
                                       : word_at(bytes, bytes.size() - number * kWord);
}

}  // namespace

IdPosition IdPosition::of(const perf_event_attr& attr) {
  IdPosition position;
  if ((attr.sample_type & PERF_SAMPLE_IDENTIFIER) != 0) {
    position.in_sample = 0;
    position.from_end = 1;
  } else if ((attr.sample_type & PERF_SAMPLE_ID) != 0) {
    position.in_sample =
        words(attr, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
    position.from_end = 1 + words(attr, PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
  }
  if (attr.sample_id_all == 0) {
    position.from_end.reset();
  }
  return position;
}

std::size_t sample_id_size(const perf_event_attr& attr) {
  constexpr std::uint64_t kFields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                                    PERF_SAMPLE_IDENTIFIER;
  return attr.sample_id_all == 0 ? 0 : words(attr, kFields) * kWord;
}

std::optional<SampleHead> head_in(const Record& record, const perf_event_attr& attr) {
  constexpr std::uint64_t kBoth = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
  const auto ip = sizeof(perf_event_header) + words(attr, PERF_SAMPLE_IDENTIFIER) * kWord;
  const auto task = word_at(record.bytes, ip + kWord);
  if ((attr.sample_type & kBoth) != kBoth || !task) {
    return std::nullopt;
  }
  const auto address = ip + 2 * kWord + words(attr, PERF_SAMPLE_TIME) * kWord;
  return SampleHead{.ip = *word_at(record.bytes, ip),
                    .pid = static_cast<std::uint32_t>(*task),
                    .tid = static_cast<std::uint32_t>(*task >> 32U),
                    .has_address = (attr.sample_type & PERF_SAMPLE_ADDR) != 0 &&
                                   word_at(record.bytes, address).value_or(0) != 0};
}

std::optional<std::uint64_t> time_in(const Record& record, const perf_event_attr& attr) {
  if ((attr.sample_type & PERF_SAMPLE_TIME) == 0 || record.type >= kFirstOfPerf) {
    return std::nullopt;
  }
  if (record.type == PERF_RECORD_SAMPLE) {
    const auto before = words(attr, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID);
    return word_at(record.bytes, sizeof(perf_event_header) + before * kWord);
  }
  if (attr.sample_id_all == 0) {
    return std::nullopt;
  }
  return word_from_end(record.bytes, 1 + words(attr, PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                                         PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
}

std::optional<std::uint32_t> thread_in(const Record& record, const perf_event_attr& attr) {
  if ((attr.sample_type & PERF_SAMPLE_TID) == 0 || attr.sample_id_all == 0 ||
      record.type >= kFirstOfPerf || record.type == PERF_RECORD_SAMPLE) {
    return std::nullopt;
  }
  const auto behind = words(attr, PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                      PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
  const auto task = word_from_end(record.bytes, 1 + behind);
  return task ? std::optional{static_cast<std::uint32_t>(*task >> 32U)} : std::nullopt;
}

std::size_t period_offset(const perf_event_attr& attr) {
  return kWord * words(attr, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                                 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
}

EventIndex::EventIndex(const std::vector<Event>& events)
    : events_{&events}, position_{IdPosition::of(events.front().attr)} {
  for (const Event& event : events) {
    for (const std::uint64_t id : event.ids) {
      by_id_.emplace(id, &event);
    }
  }
}

const Event* EventIndex::event_of(const Record& record) const {
  if (record.type >= kFirstOfPerf) {
    return nullptr;
  }
  const Event* const first = &events_->front();
  const bool sample = record.type == PERF_RECORD_SAMPLE;
  if (events_->size() == 1) {
    return sample || first->attr.sample_id_all != 0 ? first : nullptr;
  }
  const auto position = sample ? position_.in_sample : position_.from_end;
  if (!position) {
    return nullptr;
  }
  const auto id = sample ? word_at(record.bytes, sizeof(perf_event_header) + *position * kWord)
                         : word_from_end(record.bytes, *position);
  // Records synthesized by perf have the id 0; perf also assigns them to the first event.
  if (!id || *id == 0) {
    return id ? first : nullptr;
  }
  const auto found = by_id_.find(*id);
  return found == by_id_.end() ? nullptr : found->second;
}

}  // namespace pyinject::perfdata
