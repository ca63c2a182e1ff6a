// Recognizes processes that run Python, but not CPython.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/reason.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::python {

inline constexpr const char* kUseForOldPythons =
    "the perf trampoline came with Python 3.12: use py-spy or austin";

// MAPS: of process PID, in which no CPython was found. Decides by the names of mapped libraries and
// by the command line, so it is only good for a message. nullopt: none that is known.
[[nodiscard]] std::optional<Refusal> find_other_implementation(
    base::Pid pid, const std::vector<procfs::Mapping>& maps);

// The same without reading /proc. ARGUMENTS: the command line.
[[nodiscard]] std::optional<Refusal> other_implementation(
    const std::vector<procfs::Mapping>& maps, const std::vector<std::string>& arguments);

}  // namespace pyinject::python
