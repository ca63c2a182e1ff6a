// The feature of this tool that holds the StackCounts of a recording: a line "NAME COUNT" for each
// kind; behind them those of target_gaps.hpp. Pure.
#pragma once

#include "perfdata/record.hpp"
#include "pyinject/perfdata/stack_counts.hpp"

#include <cstdint>
#include <string>

namespace pyinject::perfdata {

// Bytes of the feature; all versions refuse larger ones.
inline constexpr std::uint64_t kMostStackCounts = 4096;

[[nodiscard]] std::string to_section(const StackCounts& counts);

// Ignores lines that it does not know, as those of later versions.
[[nodiscard]] StackCounts parse_stack_counts(Bytes section);

}  // namespace pyinject::perfdata
