// The name of this host: gethostname(2).
#pragma once

#include <string>

namespace pyinject::base {

// Empty: it cannot be had.
[[nodiscard]] std::string host_name();

}  // namespace pyinject::base
