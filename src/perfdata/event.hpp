// An event of a recording and the contents of its records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::perfdata {

using Bytes = std::span<const std::byte>;

struct Event {
  perf_event_attr attr{};          // padded with zeros or truncated to our size
  std::vector<std::byte> raw;      // as in the file; the size depends on the perf version
  std::vector<std::uint64_t> ids;  // one per sampled thread or processor
  std::string name = {};           // "syscalls:sys_enter_write"; empty: unknown

  // BIT: a PERF_SAMPLE_*.
  [[nodiscard]] bool samples(std::uint64_t bit) const { return (attr.sample_type & bit) != 0; }
  // Registers and stack dump for offline unwinding (--call-graph dwarf): Output removes both.
  [[nodiscard]] bool has_user_stacks() const {
    return samples(PERF_SAMPLE_REGS_USER) && samples(PERF_SAMPLE_STACK_USER);
  }
  // The kernel records the user part of its callchains later (--call-graph fp,defer; linux 6.19):
  // Output clears this.
  [[nodiscard]] bool defers_user_chains() const;
  // A page fault, or a tracepoint of system calls, page faults or file systems: it occurs because
  // of what the code in its callchain does, not while that code runs.
  [[nodiscard]] bool is_caused_by_code() const;
  // perf's own side-band event records mappings, forks and exits, but no samples.
  [[nodiscard]] bool is_dummy() const {
    return attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY;
  }
  // Has a sample each time a thread is switched out.
  [[nodiscard]] bool samples_each_switch() const {
    return attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES &&
           attr.freq == 0 && attr.sample_period == 1;
  }
  // TRACEPOINT: its id in tracefs. The kernel ignores the event's period if samples have periods
  // (linux, kernel/events/core.c, perf_swevent_event()).
  [[nodiscard]] bool samples_each_hit_of(std::uint64_t tracepoint) const {
    return attr.type == PERF_TYPE_TRACEPOINT && attr.config == tracepoint && attr.freq == 0 &&
           (attr.sample_period == 1 || samples(PERF_SAMPLE_PERIOD));
  }
};

}  // namespace pyinject::perfdata
