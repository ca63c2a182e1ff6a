#include "pyinject/targets/this_session.hpp"

#include "procfs/stat.hpp"
#include "pyinject/base/error.hpp"

#include <unistd.h>

namespace pyinject::targets {

python::Owner this_session() {
  if (const auto self = procfs::read_process_id(base::Pid{::getpid()})) {
    return {.session = *self};
  }
  throw base::Error{"cannot read /proc/self/stat: is /proc mounted"};
}

}  // namespace pyinject::targets
