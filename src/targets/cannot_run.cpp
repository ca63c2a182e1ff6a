#include "targets/cannot_run.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/cgroup.hpp"
#include "procfs/stat.hpp"

#include <fmt/format.h>

#include <string>

namespace pyinject::targets {

void warn_if_it_cannot_run(base::Pid pid, base::Logger& logger) {
  std::string why;
  if (const auto frozen = procfs::read_frozen(pid)) {
    why = fmt::format("frozen by its cgroup {} (cgroup.freeze)", base::printable(*frozen));
  } else if (const auto stat = procfs::read_stat(pid); stat && stat->state == 'T') {
    why = "stopped by job control (SIGSTOP or Ctrl-Z)";
  } else {
    return;
  }
  logger.warning("pid {}: {}: it has no samples until it goes on", pid.value(), why);
}

}  // namespace pyinject::targets
