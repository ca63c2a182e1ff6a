// Targets that cannot run, which resembles being idle: they have no samples.
#pragma once

#include "perfdata/target_gaps.hpp"
#include "pyinject/base/pid.hpp"

namespace pyinject::targets {

// Adds the process to GAPS if it is frozen by its cgroup or stopped by job control.
void add_if_it_cannot_run(base::Pid pid, perfdata::TargetGaps& gaps);

}  // namespace pyinject::targets
