#include "base/host_name.hpp"

#include <array>
#include <climits>

#include <unistd.h>

namespace pyinject::base {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string{name.data()}
                                                          : std::string{};
}

}  // namespace pyinject::base
