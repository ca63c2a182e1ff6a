// How busy the machine is: /proc/loadavg, proc_loadavg(5).
#pragma once

#include <optional>
#include <string_view>

namespace pyinject::procfs {

// The number of threads that run or could run now on all processors, including the calling one.
// nullopt: not known.
[[nodiscard]] std::optional<long> parse_runnable_threads(std::string_view text);
[[nodiscard]] std::optional<long> read_runnable_threads();

}  // namespace pyinject::procfs
