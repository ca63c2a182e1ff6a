// Perf maps of children that targets in containers forked: such a map appears when the process
// calls its first Python function, and vanishes with the container.
#pragma once

#include "procfs/target_root.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace pyinject::targets {

class ContainerMaps {
 public:
  // Holds the /tmp of a Python process open, unless it is on our own file system. Call it
  // immediately: the process may exit at any time.
  void keep(base::Pid pid);
  // Processes to look for maps of.
  [[nodiscard]] std::vector<base::Pid> pids() const;
  // The map of PID, open for reading, even after its exit; not valid() if there is none. Stops
  // looking for this map.
  [[nodiscard]] base::UniqueFd take(base::Pid pid);

 private:
  struct Place {
    procfs::TargetRoot folder;  // not its path: mounts vanish with their namespace
    std::string name;
    std::vector<uid_t> owners;  // of the map
  };
  std::map<base::Pid, Place> places_;
};

}  // namespace pyinject::targets
