// Reads a stopped thread's seccomp filters.
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <vector>

#include <linux/filter.h>

namespace pyinject::tracee {

// Newest first. THREAD must be ptrace-stopped by the calling thread. nullopt: not permitted; the
// kernel requires CAP_SYS_ADMIN and no filter on this process itself (seccomp_get_filter()).
[[nodiscard]] std::optional<std::vector<std::vector<sock_filter>>> read_seccomp_filters(
    base::Tid thread);

}  // namespace pyinject::tracee
