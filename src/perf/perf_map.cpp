#include "perf/perf_map.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <limits>

namespace pyinject::perf {

std::optional<PerfMapEntry> parse_perf_map_line(std::string_view line) {
  const auto first = line.find(' ');
  if (first == std::string_view::npos) {
    return std::nullopt;
  }
  const auto second = line.find(' ', first + 1);
  if (second == std::string_view::npos || second + 1 == line.size()) {
    return std::nullopt;
  }
  const auto number = [](std::string_view text) {
    if (text.starts_with("0x")) {
      text.remove_prefix(2);
    }
    return base::parse_number<std::uint64_t>(text, 16);
  };
  const auto start = number(line.substr(0, first));
  const auto size = number(line.substr(first + 1, second - first - 1));
  if (!start || !size || *size == 0 || *size > std::numeric_limits<std::uint64_t>::max() - *start) {
    return std::nullopt;
  }
  return PerfMapEntry{.start = *start, .size = *size, .name = line.substr(second + 1)};
}

std::string format_perf_map_line(const PerfMapEntry& entry) {
  return fmt::format("{:x} {:x} {}\n", entry.start, entry.size, base::printable(entry.name));
}

}  // namespace pyinject::perf
