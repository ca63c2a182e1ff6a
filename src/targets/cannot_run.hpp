// Targets that cannot run, which resembles being idle: they have no samples.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"

namespace pyinject::targets {

// Warns if the process is frozen by its cgroup or stopped by job control.
void warn_if_it_cannot_run(base::Pid pid, base::Logger& logger);

}  // namespace pyinject::targets
