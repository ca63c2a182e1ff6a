#include "why/event_rings.hpp"

#include "base/byte_cursor.hpp"
#include "events/attributes.hpp"
#include "perfdata/record.hpp"

#include <cstddef>

#include <linux/perf_event.h>

namespace pyinject::why {

namespace {

constexpr std::size_t kKilobyte = 1024;
constexpr events::RingSize kRingOfSwitches{.largest = 2048 * kKilobyte, .smallest = 64 * kKilobyte};
// With the longest callchains 0.9 s of samples at the default frequency, 90 ms at the highest one.
constexpr events::RingSize kRingOfSamples{.largest = 256 * kKilobyte, .smallest = 64 * kKilobyte};
constexpr events::RingSize kRingOfFaults{.largest = 64 * kKilobyte, .smallest = 16 * kKilobyte};
constexpr std::uint64_t kOfSample =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
constexpr std::size_t kSampleId = 16;  // of other records: pid, tid, time
constexpr std::uint32_t kMostOfChain = 64;

std::variant<events::ProcessorEvents, std::string> open_rings(perf_event_attr attr,
                                                              events::RingSize size) {
  attr.sample_type = kOfSample;
  attr.sample_max_stack = kMostOfChain;
  attr.exclude_callchain_user = 1;
  return events::ProcessorEvents::open(attr, size);
}

bool parse_sample(base::ByteCursor cursor, RingRecord& record) {
  record.kind = RingRecord::Kind::kSample;
  record.address = cursor.number<std::uint64_t>();
  record.pid = cursor.number<std::uint32_t>();
  record.tid = cursor.number<std::uint32_t>();
  record.time = cursor.number<std::uint64_t>();
  for (auto count = cursor.number<std::uint64_t>(); count > 0 && !cursor.failed(); --count) {
    if (const auto address = cursor.number<std::uint64_t>(); address < PERF_CONTEXT_MAX) {
      record.kernel.push_back(address);
    }
  }
  return !cursor.failed();
}

}  // namespace

bool parse_record(std::span<const std::byte> bytes, RingRecord& record) {
  record.kernel.clear();
  base::ByteCursor cursor{bytes};
  const perfdata::Record whole{.type = cursor.number<std::uint32_t>(),
                               .misc = cursor.number<std::uint16_t>(),
                               .bytes = bytes};
  if (cursor.number<std::uint16_t>() != bytes.size() || cursor.failed()) {
    return false;
  }
  if (whole.type == PERF_RECORD_SAMPLE) {
    record.user = (whole.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    return parse_sample(cursor, record);
  }
  if (cursor.left().size() < kSampleId) {
    return false;
  }
  base::ByteCursor id{bytes.last(kSampleId)};
  record.pid = id.number<std::uint32_t>();
  record.tid = id.number<std::uint32_t>();
  record.time = id.number<std::uint64_t>();
  if (const auto task = perfdata::parse_task(whole)) {
    record.kind =
        whole.type == PERF_RECORD_FORK ? RingRecord::Kind::kStart : RingRecord::Kind::kExit;
    record.pid = task->pid;
    record.tid = task->tid;
    return true;
  }
  if (whole.type == PERF_RECORD_SWITCH_CPU_WIDE) {
    record.kind = (whole.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0 ? RingRecord::Kind::kIn
                  : (whole.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0
                      ? RingRecord::Kind::kPreempted
                      : RingRecord::Kind::kOut;
    return true;
  }
  record.kind = RingRecord::Kind::kLost;
  cursor.number<std::uint64_t>();  // the id of the event
  record.lost = cursor.number<std::uint64_t>();
  return whole.type == PERF_RECORD_LOST && !cursor.failed();
}

std::variant<EventRings, std::string> EventRings::open(std::chrono::nanoseconds period) {
  auto clock = open_rings(events::processor_clock(period), kRingOfSamples);
  if (auto* const why = std::get_if<std::string>(&clock)) {
    return std::move(*why);
  }
  auto attr = events::software_event(PERF_COUNT_SW_CONTEXT_SWITCHES);
  attr.sample_period = 1;
  attr.context_switch = 1;
  attr.task = 1;
  attr.disabled = 1;
  auto switches = open_rings(attr, kRingOfSwitches);
  if (auto* const why = std::get_if<std::string>(&switches)) {
    return std::move(*why);
  }
  auto fault = events::software_event(PERF_COUNT_SW_PAGE_FAULTS);
  fault.sample_period = kFaultPeriod;
  fault.disabled = 1;
  auto faults = open_rings(fault, kRingOfFaults);
  auto* const opened = std::get_if<events::ProcessorEvents>(&faults);
  return EventRings{std::get<events::ProcessorEvents>(std::move(switches)),
                    std::get<events::ProcessorEvents>(std::move(clock)),
                    opened != nullptr ? std::optional{std::move(*opened)} : std::nullopt};
}

void EventRings::enable() {
  switches_.enable();
  clock_.enable();
  if (faults_) {
    faults_->enable();
  }
}

void EventRings::disable() {
  switches_.disable();
  clock_.disable();
  if (faults_) {
    faults_->disable();
  }
}

void EventRings::read(const std::function<void(const RingRecord&)>& take) {
  auto* const faults = faults_ ? &*faults_ : nullptr;
  for (auto* const events : {&switches_, &clock_, faults}) {
    if (events == nullptr) {
      continue;
    }
    parsed_.at_switch = events == &switches_;
    parsed_.at_fault = events == faults;
    events->read([this, &take](std::span<const std::byte> bytes) {
      if (parse_record(bytes, parsed_)) {
        take(parsed_);
      }
    });
  }
}

}  // namespace pyinject::why
