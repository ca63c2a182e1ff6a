// In whose name targets are switched on.
#pragma once

#include "pyinject/python/injector.hpp"

namespace pyinject::session {

// This process, until it ends: it or its guard has to switch the targets off. Throws base::Error
// when /proc is not mounted.
[[nodiscard]] python::Owner this_session();

}  // namespace pyinject::session
