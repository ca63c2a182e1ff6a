// The load of the machine: /proc/loadavg, proc_loadavg(5).
#pragma once

#include <optional>
#include <string_view>

namespace pyinject::procfs {

// Number of running and runnable threads on all processors, including the calling one. nullopt:
// unknown.
[[nodiscard]] std::optional<long> parse_runnable_threads(std::string_view text);
[[nodiscard]] std::optional<long> read_runnable_threads();

}  // namespace pyinject::procfs
