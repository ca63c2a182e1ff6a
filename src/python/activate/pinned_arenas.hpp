// Keeps CPython's trampolines mapped until the target ends: it unmaps them at its exit while daemon
// threads may still run in them (cpython gh-143228).
#pragma once

#include "procfs/maps.hpp"
#include "python/activate/attached_target.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::python {

// Pins all arenas of a target whose release needs that, and whose threads are all stopped. A string
// says why it could not. MAPS: the target's mappings; they are read again when an arena is newer.
[[nodiscard]] std::optional<std::string> pin_code_arenas(const AttachContext& context,
                                                         const std::vector<procfs::Mapping>& maps);

}  // namespace pyinject::python
