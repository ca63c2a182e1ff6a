#include "pyinject/procfs/reopen.hpp"

#include <fmt/format.h>

#include <fcntl.h>

namespace pyinject::procfs {

base::UniqueFd reopen(const base::UniqueFd& located, int flags) {
  return base::UniqueFd{::open(fmt::format("/proc/self/fd/{}", located.get()).c_str(), flags)};
}

}  // namespace pyinject::procfs
