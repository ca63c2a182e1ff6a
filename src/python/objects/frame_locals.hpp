// The arguments and local variables of a function that runs or is suspended.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/objects.hpp"
#include "python/objects/remote_objects.hpp"

#include <optional>

namespace pyinject::python {

// Of the _PyInterpreterFrame at FRAME, which executes the code object at CODE. nullopt: it does not
// (any more), or its variables change while they are read.
[[nodiscard]] std::optional<Locals> frame_locals(const RemoteObjects& objects,
                                                 base::RemoteAddress frame,
                                                 base::RemoteAddress code);

}  // namespace pyinject::python
