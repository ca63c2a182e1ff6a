// Checks whether CPython will be able to write /tmp/perf-PID.map: CPython does not report failures.
#pragma once

#include "procfs/status.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/reason.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pyinject::python {

// Examines the target's own /tmp. PATH: the map as the target names it. Changes nothing. A file
// left by an earlier process with that pid is no reason to refuse if move_stale_map() can move it;
// with START_TIME 0 it is a reason.
[[nodiscard]] std::optional<Refusal> check_map_file(base::Pid pid, const procfs::Status& status,
                                                    std::uint64_t start_time,
                                                    const std::string& path);

// CPython appends to an existing file. A map older than the process belongs to another one, and
// perf would mix up their names: renames it to PATH.old, as perf does with perf.data. Returns the
// message for the user if it renamed the file or failed to.
[[nodiscard]] std::optional<std::string> move_stale_map(base::Pid pid, std::uint64_t start_time,
                                                        const std::string& path);

}  // namespace pyinject::python
