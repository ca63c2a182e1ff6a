// Will CPython be able to write /tmp/perf-PID.map? It says nothing when it is not.
#pragma once

#include "procfs/status.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/reason.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pyinject::python {

// Looks at the target's own /tmp. PATH: the map as the target names it. Changes nothing. A file
// that an earlier process of that pid left is no reason to refuse if move_stale_map() can move it;
// START_TIME 0: it is one.
[[nodiscard]] std::optional<Refusal> check_map_file(base::Pid pid, const procfs::Status& status,
                                                    std::uint64_t start_time,
                                                    const std::string& path);

// CPython appends to what is there. A map that is older than the process is another one's, whose
// names perf would mix with ours: it is renamed to PATH.old, as perf does with perf.data. Returns
// the message to be shown, if it did so or could not.
[[nodiscard]] std::optional<std::string> move_stale_map(base::Pid pid, std::uint64_t start_time,
                                                        const std::string& path);

}  // namespace pyinject::python
