// What the file of a running perf tells of its events.
#pragma once

#include "bpf/sampler.hpp"
#include "perfdata/event.hpp"
#include "pyinject/weave/weave_flags.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pyinject::record {

// The tracepoints that FLAGS use for their times and results alone: the program need not run there.
[[nodiscard]] std::vector<std::uint64_t> tracepoints_without_stacks(const weave::WeaveFlags& flags);

// WITHOUT_STACKS: such tracepoints.
[[nodiscard]] bpf::EventsOfPerf describe_events(std::span<const perfdata::Event> events,
                                                std::span<const std::uint64_t> without_stacks);
// The same for FILE, which perf has begun to write. Nothing is told if it cannot be read.
[[nodiscard]] bpf::EventsOfPerf describe_events_in(const std::string& file,
                                                   std::span<const std::uint64_t> without_stacks);

}  // namespace pyinject::record
