// A stopped thread's seccomp filters.
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <vector>

#include <linux/filter.h>

namespace pyinject::tracee {

// The newest first. THREAD must be stopped by this thread's ptrace. nullopt: they cannot be read;
// the kernel wants CAP_SYS_ADMIN and no filter on this process itself (seccomp_get_filter()).
[[nodiscard]] std::optional<std::vector<std::vector<sock_filter>>> read_seccomp_filters(
    base::Tid thread);

}  // namespace pyinject::tracee
