// The event, time and thread of a record: fields with positions that depend on sample_type. Pure.
// perf_event_open(2), "PERF_RECORD_SAMPLE" and "sample_id".
#pragma once

#include "perfdata/record.hpp"
#include "perfdata/sample.hpp"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace pyinject::perfdata {

// Position of the event id in records, in words of 8 bytes.
struct IdPosition {
  std::optional<unsigned> in_sample;  // from the end of the header
  std::optional<unsigned> from_end;   // in other records; 1 is the last word
  bool operator==(const IdPosition&) const = default;

  [[nodiscard]] static IdPosition of(const perf_event_attr& attr);
};

// Size of the trailer that the kernel appends to other records (sample_id_all).
[[nodiscard]] std::size_t sample_id_size(const perf_event_attr& attr);

// Of a sample that has both ip and pid/tid. All fields, and the event id, are in the first 64
// bytes.
[[nodiscard]] std::optional<SampleHead> head_in(const Record& record, const perf_event_attr& attr);

[[nodiscard]] std::optional<std::uint64_t> time_in(const Record& record,
                                                   const perf_event_attr& attr);

// The thread of a record that is not a sample. For a context switch, the thread that leaves or
// takes the processor.
[[nodiscard]] std::optional<std::uint32_t> thread_in(const Record& record,
                                                     const perf_event_attr& attr);

// Offset of a sample's period, or where it would be, after the header.
[[nodiscard]] std::size_t period_offset(const perf_event_attr& attr);

class EventIndex {
 public:
  // EVENTS must not move.
  explicit EventIndex(const std::vector<Event>& events);
  // Null for an unknown id, and for records without an id.
  [[nodiscard]] const Event* event_of(const Record& record) const;

 private:
  const std::vector<Event>* events_;
  IdPosition position_;
  std::unordered_map<std::uint64_t, const Event*> by_id_;
};

}  // namespace pyinject::perfdata
