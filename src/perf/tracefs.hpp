// The kernel's tracepoints, as tracefs lists them (linux, Documentation/trace/events.rst).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pyinject::perf {

inline constexpr std::string_view kTracefsMissing =
    "tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing";

// The usual mount point where tracefs is; mounts nothing. nullopt: it is at none of them.
[[nodiscard]] std::optional<std::string> find_tracefs();

// The id of TRACEPOINT ("sched:sched_switch") in TRACEFS; nullopt: none, or unreadable.
[[nodiscard]] std::optional<std::uint64_t> tracepoint_id(const std::string& tracefs,
                                                         std::string_view tracepoint);

}  // namespace pyinject::perf
