// One event of a recording: what its records hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::perfdata {

using Bytes = std::span<const std::byte>;

struct Event {
  perf_event_attr attr{};      // filled up with zeros, or cut, to the size we know
  std::vector<std::byte> raw;  // as it is in the file: perfs of different ages differ in its size
  std::vector<std::uint64_t> ids;  // one for each thread or processor that was sampled

  // BIT: a PERF_SAMPLE_*.
  [[nodiscard]] bool samples(std::uint64_t bit) const { return (attr.sample_type & bit) != 0; }
  // Registers and a piece of the stack to unwind offline (--call-graph dwarf): what Output takes
  // out.
  [[nodiscard]] bool has_user_stacks() const {
    return samples(PERF_SAMPLE_REGS_USER) && samples(PERF_SAMPLE_STACK_USER);
  }
  // perf's own side-band event has records of mappings and births, but no samples.
  [[nodiscard]] bool is_dummy() const {
    return attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY;
  }
  // A sample for each time that a thread leaves its processor.
  [[nodiscard]] bool samples_each_switch() const {
    return attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES &&
           attr.freq == 0 && attr.sample_period == 1;
  }
};

}  // namespace pyinject::perfdata
