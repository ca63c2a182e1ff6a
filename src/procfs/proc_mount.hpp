// How /proc is mounted: proc(5), "Mount options".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pyinject::procfs {

// The value of hidepid= of the /proc that this process sees: "invisible", "2", ... Empty: other
// users' processes are visible. nullopt: no /proc is mounted.
[[nodiscard]] std::optional<std::string> hidden_processes();
// The same from TEXT, the contents of /proc/self/mountinfo. The last mount of a directory covers
// earlier ones.
[[nodiscard]] std::optional<std::string> parse_hidden_processes(std::string_view text);

}  // namespace pyinject::procfs
