// Which processes are meant.
#pragma once

#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace pyinject::session {

// PIDS in their order, each once.
[[nodiscard]] std::vector<base::Pid> without_repetitions(const std::vector<base::Pid>& pids);

// Every process that is visible but this tool and kernel threads.
[[nodiscard]] std::vector<base::Pid> visible_processes();

// Processes whose parent is one of PIDS, but for this tool.
[[nodiscard]] std::vector<base::Pid> children_of(const std::vector<base::Pid>& pids);

// What is remembered of a target when it is activated, to find those it forks from then on: it may
// have exited by the time they are looked for.
struct Ancestor {
  base::ProcessId id;
  std::uint64_t since = 0;  // clock ticks since boot
  std::optional<std::pair<dev_t, ino_t>> executable;
};
[[nodiscard]] Ancestor ancestor_now(base::ProcessId id);

// Processes that one of ANCESTORS may have forked since: later descendants, and what runs the same
// executable and was started later (a daemon's child has lost its parent). KNOWN are left out.
[[nodiscard]] std::vector<base::Pid> possible_children(const std::vector<Ancestor>& ancestors,
                                                       const std::set<base::ProcessId>& known);

}  // namespace pyinject::session
