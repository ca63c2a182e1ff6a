// Verifies, in a running process, a layout with which this release was not tested.
#pragma once

#include "memory/process_memory.hpp"
#include "pyinject/base/remote_address.hpp"
#include "python/layout/runtime_layout.hpp"

#include <optional>
#include <string>

namespace pyinject::python {

struct Disproof {
  bool too_early = false;  // no thread runs Python code yet: try again later
  std::string found;       // what does not fit
};

// Follows the lists of interpreters and threads, and looks at the frames that they lead to: each
// must be what LAYOUT says. parse_layout() has checked what this cannot tell apart. CODE_TYPE:
// address of PyCode_Type. nullopt: all fits.
[[nodiscard]] std::optional<Disproof> disprove(const memory::MemoryReader& memory,
                                               const RuntimeLayout& layout,
                                               base::RemoteAddress runtime,
                                               base::RemoteAddress code_type);

}  // namespace pyinject::python
