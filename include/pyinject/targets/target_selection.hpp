// Lists of processes to consider as targets.
//
// For example:
//   const auto workers = targets::children_of({pid});
//   std::cout << workers.size() << " child processes\n";
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/session_names.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace pyinject::targets {

// PIDS without duplicates, in the same order.
[[nodiscard]] std::vector<base::Pid> without_repetitions(const std::vector<base::Pid>& pids);

// Every visible process except this tool and kernel threads.
[[nodiscard]] std::vector<base::Pid> visible_processes();

// Processes whose parent is one of PIDS, except this tool.
[[nodiscard]] std::vector<base::Pid> children_of(const std::vector<base::Pid>& pids);

// Facts about a target, saved at its activation to find the children that it forks later, even if
// it has exited by then.
struct Ancestor {
  base::ProcessId id;
  std::uint64_t since = 0;  // clock ticks since boot
  std::optional<std::pair<dev_t, ino_t>> executable;
};
[[nodiscard]] Ancestor ancestor_now(base::ProcessId id);

// Processes that one of ANCESTORS may have forked since: later descendants, and later processes
// that run the same executable (a daemon's child has lost its parent). Skips KNOWN.
[[nodiscard]] std::vector<base::Pid> possible_children(const std::vector<Ancestor>& ancestors,
                                                       const std::set<base::ProcessId>& known);

}  // namespace pyinject::targets
