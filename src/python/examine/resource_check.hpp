// Checks whether a process may open one more file and map memory: CPython's trampoline code reports
// neither to its caller.
#pragma once

#include "procfs/limits.hpp"
#include "procfs/maps.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace pyinject::python {

// MAPS: its mappings; MOST_MAPPINGS: vm.max_map_count. Pure.
[[nodiscard]] std::optional<Refusal> check_address_space(base::Pid pid, const Version& version,
                                                         const procfs::Limits& limits,
                                                         const std::vector<procfs::Mapping>& maps,
                                                         std::size_t most_mappings);

// Both checks, with what PID may use now.
[[nodiscard]] std::optional<Refusal> check_resources(base::Pid pid, const Version& version,
                                                     const procfs::Status& status,
                                                     const std::vector<procfs::Mapping>& maps);

}  // namespace pyinject::python
