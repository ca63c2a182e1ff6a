#include "record/events_of_perf.hpp"

#include "perfdata/input.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <algorithm>
#include <variant>

#include <fcntl.h>

namespace pyinject::record {

std::vector<std::uint64_t> tracepoints_without_stacks(const weave::WeaveFlags& flags) {
  std::vector<std::uint64_t> all;
  for (const auto& call : flags.timed_calls) {
    all.push_back(call.exit);
  }
  for (const auto& call : flags.memory_calls) {
    all.insert(all.end(), {call.enter, call.exit});
  }
  return all;
}

bpf::EventsOfPerf describe_events(std::span<const perfdata::Event> events,
                                  std::span<const std::uint64_t> without_stacks) {
  bpf::EventsOfPerf result{.only_tracepoints = !events.empty()};
  for (const auto& event : events) {
    const bool without = std::ranges::any_of(without_stacks, [&event](std::uint64_t tracepoint) {
      return event.samples_each_hit_of(tracepoint) && !event.samples(PERF_SAMPLE_CALLCHAIN);
    });
    const bool traced = event.attr.type == PERF_TYPE_TRACEPOINT;
    result.only_tracepoints = result.only_tracepoints && (traced || event.is_dummy());
    for (const auto id : event.ids) {
      if (without) {
        result.without_stacks.push_back(id);
      } else if (traced) {
        result.tracepoints.emplace(id, event.attr.config);
      }
    }
  }
  std::ranges::sort(result.without_stacks);
  return result;
}

bpf::EventsOfPerf describe_events_in(const std::string& file,
                                     std::span<const std::uint64_t> without_stacks) {
  constexpr int kReads = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  base::UniqueFd opened{::open((file + "/data").c_str(), kReads)};  // of a directory (--threads)
  if (!opened.valid()) {
    opened.reset(::open(file.c_str(), kReads));
  }
  if (!opened.valid()) {
    return {};
  }
  const auto events = perfdata::events_of_running(opened, file);
  const auto* const all = std::get_if<std::vector<perfdata::Event>>(&events);
  return all == nullptr ? bpf::EventsOfPerf{} : describe_events(*all, without_stacks);
}

}  // namespace pyinject::record
