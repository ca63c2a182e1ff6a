// The perf maps of children that targets in containers forked: such a map appears when its process
// calls its first Python function, and goes with the container.
#pragma once

#include "procfs/target_root.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace pyinject::session {

class ContainerMaps {
 public:
  // Keeps hold of the /tmp of a Python process, unless its file system is our own. At once: it may
  // be gone in a moment.
  void keep(base::Pid pid);
  // Those whose maps are to be looked for.
  [[nodiscard]] std::vector<base::Pid> pids() const;
  // The map of PID, for reading, also after its end; not valid() when it has none. It is not
  // looked for again.
  [[nodiscard]] base::UniqueFd take(base::Pid pid);

 private:
  struct Place {
    procfs::TargetRoot folder;  // itself: mounts go with their namespace
    std::string name;
    std::vector<uid_t> owners;  // of the map
  };
  std::map<base::Pid, Place> places_;
};

}  // namespace pyinject::session
