// Kernel settings: /proc/sys, sysctl(8).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pyinject::procfs {

// The value of the sysctl NAME ("kernel.perf_event_paranoid") without the newline. nullopt: no such
// setting, or unreadable; errno says why.
[[nodiscard]] std::optional<std::string> read_sysctl(std::string_view name);

}  // namespace pyinject::procfs
