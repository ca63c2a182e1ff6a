#include "targets/cannot_run.hpp"

#include "procfs/cgroup.hpp"
#include "procfs/stat.hpp"

namespace pyinject::targets {

void add_if_it_cannot_run(base::Pid pid, perfdata::TargetGaps& gaps) {
  if (const auto frozen = procfs::read_frozen(pid)) {
    gaps.add(perfdata::Gap::kFrozen, pid, *frozen);
  } else if (const auto stat = procfs::read_stat(pid); stat && stat->state == 'T') {
    gaps.add(perfdata::Gap::kStopped, pid);
  }
}

}  // namespace pyinject::targets
