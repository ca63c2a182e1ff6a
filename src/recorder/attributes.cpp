#include "recorder/attributes.hpp"

#include <algorithm>

namespace pyinject::recorder {

namespace {

// What each event of a recording shares.
perf_event_attr common(perf_event_attr attr, const Options& options) {
  attr.size = sizeof attr;
  attr.sample_id_all = 1;
  attr.inherit = options.inherit ? 1 : 0;
  attr.read_format = PERF_FORMAT_ID | kFormatLost;
  attr.sample_type |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                      PERF_SAMPLE_CPU;
  attr.use_clockid = options.clock ? 1 : 0;
  attr.clockid = options.clock.value_or(0);
  return attr;
}

}  // namespace

perf_event_attr sampling_attributes(const NamedEvent& event, const Options& options,
                                    std::uint64_t most) {
  auto attr = common(event.attr, options);
  attr.disabled = 1;
  const bool traced = attr.type == PERF_TYPE_TRACEPOINT;
  attr.sample_type |= traced ? PERF_SAMPLE_RAW : 0;
  const bool asked = options.frequency || options.most_frequent;
  // A rate of the event's own wins; a tracepoint samples each hit unless told otherwise.
  const auto period = event.period       ? event.period
                      : event.frequency  ? std::nullopt
                      : options.period   ? options.period
                      : traced && !asked ? std::optional<std::uint64_t>{1}
                                         : std::nullopt;
  if (period) {
    attr.sample_period = *period;
    // With PERF_SAMPLE_PERIOD each hit of a software event is a sample, whatever its period (linux,
    // kernel/events/core.c, perf_swevent_event()). perf has it for tracepoints.
    attr.sample_type |= traced || options.sampled_periods ? PERF_SAMPLE_PERIOD : 0;
  } else {
    attr.freq = 1;
    attr.sample_type |= PERF_SAMPLE_PERIOD;
    const auto wanted =
        options.most_frequent ? most : options.frequency.value_or(kDefaultFrequency);
    attr.sample_freq = std::min(event.frequency.value_or(wanted), most);
  }
  if (event.callchain.value_or(options.chains != Options::Chains::kNone)) {
    attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_user = options.kernel_chains_only ? 1 : 0;
    attr.exclude_callchain_kernel = options.user_chains_only ? 1 : 0;
    if (options.chains == Options::Chains::kCopiedStacks && !event.callchain) {
      attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
      attr.sample_regs_user = registers_for_unwinding();
      attr.sample_stack_user = options.stack_bytes;
      attr.exclude_callchain_user = 1;
    }
  }
  return attr;
}

perf_event_attr side_band_attributes(const Options& options) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr = common(attr, options);
  attr.sample_period = 1;
  attr.exclude_kernel = 1;  // otherwise it takes rights, and it counts nothing
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.context_switch = options.switches ? 1 : 0;
  // perf unwinds copied stacks by tables in parts of files that are no code.
  attr.mmap_data = options.chains == Options::Chains::kCopiedStacks ? 1 : 0;
  // Functions of BPF programs; the kernel tells them to events of all processes only.
  const bool all = options.pids.empty() && !options.cgroup;
  attr.ksymbol = all ? 1 : 0;
  attr.bpf_event = all ? 1 : 0;
  return attr;
}

}  // namespace pyinject::recorder
