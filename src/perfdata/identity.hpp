// Which event a record is of, and when it happened: fields whose places follow from sample_type.
// Pure. perf_event_open(2), "PERF_RECORD_SAMPLE" and "sample_id".
#pragma once

#include "perfdata/record.hpp"
#include "perfdata/sample.hpp"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace pyinject::perfdata {

// Where records have the id of their event, in words of 8 bytes.
struct IdPosition {
  std::optional<unsigned> in_sample;  // from the end of the header
  std::optional<unsigned> from_end;   // of other records; 1 is the last word
  bool operator==(const IdPosition&) const = default;

  [[nodiscard]] static IdPosition of(const perf_event_attr& attr);
};

// The size of what the kernel puts behind its other records (sample_id_all).
[[nodiscard]] std::size_t sample_id_size(const perf_event_attr& attr);

// Of a sample that has both. All of it lies in the first 64 bytes, as what tells its event does.
[[nodiscard]] std::optional<SampleHead> head_in(const Record& record, const perf_event_attr& attr);

[[nodiscard]] std::optional<std::uint64_t> time_in(const Record& record,
                                                   const perf_event_attr& attr);

// Of a record that is no sample: the thread it is about. That of a switch is the one that leaves or
// takes the processor.
[[nodiscard]] std::optional<std::uint32_t> thread_in(const Record& record,
                                                     const perf_event_attr& attr);

// Where a sample has its period, or would have it, behind the header.
[[nodiscard]] std::size_t period_offset(const perf_event_attr& attr);

class EventIndex {
 public:
  // EVENTS have to stay where they are.
  explicit EventIndex(const std::vector<Event>& events);
  // Null for an id that no event has, and for records that have none.
  [[nodiscard]] const Event* event_of(const Record& record) const;

 private:
  const std::vector<Event>* events_;
  IdPosition position_;
  std::unordered_map<std::uint64_t, const Event*> by_id_;
};

}  // namespace pyinject::perfdata
