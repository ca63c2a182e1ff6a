// Keeps CPython's trampolines mapped until the target exits: CPython unmaps them at exit while
// daemon threads may still run in them (cpython gh-143228).
#pragma once

#include "procfs/maps.hpp"
#include "python/activate/attached_target.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::python {

// Pins all arenas if the target's release needs it; all threads must be stopped. A string says why
// it failed. MAPS: the target's mappings; read again if an arena is newer.
[[nodiscard]] std::optional<std::string> pin_code_arenas(const AttachContext& context,
                                                         const std::vector<procfs::Mapping>& maps);

}  // namespace pyinject::python
