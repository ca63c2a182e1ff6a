// The perf map of a process in its own file system, where the process can put anything in its
// place.
#pragma once

#include "procfs/status.hpp"
#include "procfs/target_root.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace pyinject::targets {

// The users that may own the map of PID: those that it runs as, and root if only root could have
// mounted another file there.
[[nodiscard]] std::vector<uid_t> map_owners(base::Pid pid, const procfs::Status& status);

// Opens a regular file of one of OWNERS, on a file system that holds data, for reading; not valid()
// if it is anything else.
[[nodiscard]] base::UniqueFd open_target_map(
    const procfs::TargetRoot& root, const std::string& path, const std::vector<uid_t>& owners,
    procfs::TargetRoot::Links links = procfs::TargetRoot::Links::kInside);

// The perf map of the process with pid NUMBER: from its own file system while it runs, else from
// our /tmp. Not valid: there is none. Only opens regular files.
[[nodiscard]] base::UniqueFd open_perf_map(std::uint32_t number);

}  // namespace pyinject::targets
