#include "procfs/path_beneath.hpp"

#include <fmt/format.h>

namespace pyinject::procfs {

std::string path_beneath(int directory, const std::string& name) {
  return fmt::format("/proc/self/fd/{}/{}", directory, name);
}

}  // namespace pyinject::procfs
