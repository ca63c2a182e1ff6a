// The events that a user names with `-e`, as perf does: perf-list(1), "EVENT MODIFIERS". Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::recorder {

struct NamedEvent {
  std::string name;        // as perf calls it: "cpu-clock:u", "page-faults/period=1/"
  perf_event_attr attr{};  // type, config, exclusions and precision only
  std::optional<std::uint64_t> period = {};     // period=N
  std::optional<std::uint64_t> frequency = {};  // freq=N
  std::optional<bool> callchain = {};           // call-graph=fp or no; nullopt: as all others
};

// The id of a tracepoint ("sched:sched_switch") in tracefs; nullopt: there is none.
using TracepointId = std::function<std::optional<std::uint64_t>(std::string_view)>;

// LIST: "cycles:u,page-faults/period=1/". A string says why not, and is empty for what perf can do
// and this recorder cannot.
[[nodiscard]] std::variant<std::vector<NamedEvent>, std::string> parse_events(
    std::string_view list, const TracepointId& tracepoint);

// `cycles`, which perf records unless told otherwise.
[[nodiscard]] NamedEvent default_event();
// What perf takes on machines without hardware counters.
[[nodiscard]] NamedEvent processor_clock();

}  // namespace pyinject::recorder
