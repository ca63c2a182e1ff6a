// Perf map files: one symbol per line, "START SIZE NAME", both numbers hexadecimal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pyinject::perf {

struct PerfMapEntry {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string_view name;  // not empty; may contain blanks
};

// LINE without its newline; nullopt when it is none.
[[nodiscard]] std::optional<PerfMapEntry> parse_perf_map_line(std::string_view line);

// The line as it is safe to hand on: a name from a target may hold anything.
[[nodiscard]] std::string format_perf_map_line(const PerfMapEntry& entry);

}  // namespace pyinject::perf
