// The feature of this tool that holds the StackCounts of a recording: a line "NAME COUNT" for each
// kind. Pure.
#pragma once

#include "perfdata/record.hpp"
#include "pyinject/perfdata/stack_counts.hpp"

#include <string>

namespace pyinject::perfdata {

[[nodiscard]] std::string to_section(const StackCounts& counts);

// Ignores lines that it does not know, as those of later versions.
[[nodiscard]] StackCounts parse_stack_counts(Bytes section);

}  // namespace pyinject::perfdata
