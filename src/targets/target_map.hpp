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

namespace pyinject::session {

// The users that the map of PID may belong to: those that it runs as, and root if only root could
// have mounted another file there.
[[nodiscard]] std::vector<uid_t> map_owners(base::Pid pid, const procfs::Status& status);

// A regular file of one of OWNERS on a file system that holds data, for reading; else not valid().
[[nodiscard]] base::UniqueFd open_target_map(
    const procfs::TargetRoot& root, const std::string& path, const std::vector<uid_t>& owners,
    procfs::TargetRoot::Links links = procfs::TargetRoot::Links::kInside);

// The perf map of a process whose number that is, wherever it is: that of its own file system while
// it runs, else the one in our /tmp. Invalid: there is none. Only a regular file is opened.
[[nodiscard]] base::UniqueFd open_perf_map(std::uint32_t number);

}  // namespace pyinject::session
