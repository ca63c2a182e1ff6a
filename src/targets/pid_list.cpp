#include "targets/pid_list.hpp"

#include "base/pid_list.hpp"

namespace pyinject::targets {

std::string list_pids(const std::vector<base::Pid>& pids) {
  return base::list_pids(pids, pids.size());
}

}  // namespace pyinject::targets
