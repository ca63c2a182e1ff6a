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
  std::string_view name;  // not empty; may contain spaces
};

// LINE without its newline; nullopt: not a valid line.
[[nodiscard]] std::optional<PerfMapEntry> parse_perf_map_line(std::string_view line);

// The line with a sanitized name: names from a target may contain anything.
[[nodiscard]] std::string format_perf_map_line(const PerfMapEntry& entry);

}  // namespace pyinject::perf
