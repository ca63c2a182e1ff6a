// The owner of the targets that this process switches on.
//
// For example:
//   targets::ManagerOptions options;
//   options.owner = targets::this_session();  // its destructor switches its targets off
#pragma once

#include "pyinject/python/injector.hpp"
#include "pyinject/session_names.hpp"

namespace pyinject::targets {

// This process, until it exits: it or its guard must switch the targets off. Throws base::Error if
// /proc is not mounted.
[[nodiscard]] python::Owner this_session();

}  // namespace pyinject::targets
