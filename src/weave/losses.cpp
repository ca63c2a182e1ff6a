#include "weave/losses.hpp"

#include "base/byte_cursor.hpp"

#include <algorithm>

namespace pyinject::weave {

namespace {

// The counts are not trusted: saturates.
void add_up(std::uint64_t& sum, std::uint64_t count) {
  if (__builtin_add_overflow(sum, count, &sum)) {
    sum = ~std::uint64_t{0};
  }
}

}  // namespace

void Losses::learn(const perfdata::Input& input, const perfdata::Record& record) {
  base::ByteCursor cursor{record.bytes};
  cursor.take(sizeof(perf_event_header));
  if (record.type == PERF_RECORD_LOST) {
    cursor.number<std::uint64_t>();  // the reporting event, not the one with the losses
    const auto count = cursor.number<std::uint64_t>();
    if (!cursor.failed()) {
      ++times_;
      add_up(records_, count);
    }
    return;
  }
  constexpr std::uint16_t kDroppedByFilter = 1U << 15U;  // PERF_RECORD_MISC_LOST_SAMPLES_BPF
  const auto* const event = input.event_of(record);
  const auto count = cursor.number<std::uint64_t>();
  if (!cursor.failed() && (record.misc & kDroppedByFilter) == 0 &&
      (event == nullptr || !event->is_dummy())) {
    add_up(samples_, count);
  }
}

// The same losses are reported twice, and each way misses some: LOST those at the end, LOST_SAMPLES
// (perf 6.1, Linux 6.0) those of children that inherited an event. Switch records fill the buffers,
// too, and are not samples.
std::uint64_t Losses::samples(const perfdata::Input& input) const {
  const bool switches = std::ranges::any_of(
      input.events(), [](const auto& event) { return event.attr.context_switch != 0; });
  return switches && samples_ != 0 ? samples_ : std::max(records_, samples_);
}

void Losses::summarize(const perfdata::Input& input, WeaveSummary& summary) const {
  for (const auto& event : input.events()) {
    // A period has no effect on tracepoints.
    const bool each = event.samples_each_hit_of(event.attr.config);
    if (!event.is_dummy() && !event.samples_each_switch() && !each) {
      (event.attr.freq != 0 ? summary.by_frequency : summary.by_period) = true;
    }
  }
  summary.losses = times_;
  summary.lost = samples(input);
}

}  // namespace pyinject::weave
