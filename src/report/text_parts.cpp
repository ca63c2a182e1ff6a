#include "report/text_parts.hpp"

#include "base/format.hpp"
#include "base/source_path.hpp"
#include "base/text.hpp"
#include "report/names.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <utility>

namespace pyinject::report {

namespace {

constexpr std::size_t kLongestName = 60;

}  // namespace

std::string_view name_of(View view) {
  constexpr std::array<std::string_view, 11> kNames{"functions", "lines",  "threads", "processes",
                                                    "tasks",     "gil",    "tree",    "annotate",
                                                    "waits",     "events", "imports"};
  return kNames.at(static_cast<std::size_t>(view));
}

std::string seconds_text(std::uint64_t nanoseconds) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kUnits{
      {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}};
  const auto amount = static_cast<double>(nanoseconds);
  for (const auto& [size, unit] : kUnits) {
    if (amount >= size) {
      const double value = amount / size;
      return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
    }
  }
  return nanoseconds == 0 ? "0" : fmt::format("{} ns", nanoseconds);
}

std::string weight_text(Unit unit, std::uint64_t weight) {
  return weighs_time(unit)      ? seconds_text(weight)
         : unit == Unit::kBytes ? weight == 0 ? "0" : base::bytes_text(weight)
                                : std::to_string(weight);
}

std::string place_text(std::string_view file, std::uint32_t line) {
  auto text = base::printable(base::short_path(file));
  return line == 0 ? text : fmt::format("{}:{}", text, line);
}

std::string percent_text(std::uint64_t part, std::uint64_t all) {
  return fmt::format("{:.1f}%",
                     all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

std::string_view unit_text(Unit unit) {
  return weighs_time(unit) ? "ns" : unit == Unit::kBytes ? "bytes" : "samples";
}

std::string title_text(const std::string& event, Unit unit, std::uint64_t weight) {
  if (unit == Unit::kWaits) {
    return fmt::format("waits: {} in all\n", seconds_text(weight));
  }
  if (unit == Unit::kCalls) {
    return fmt::format("{}: {} in these system calls\n", base::printable(event),
                       seconds_text(weight));
  }
  if (unit == Unit::kBytes) {
    return fmt::format(
        "{}: {} {}\n", base::printable(event), base::bytes_text(weight),
        event == kAllocatedMemory
            ? "allocated and not freed (an estimate from what the allocator samples)"
            : "mapped and not given back (small objects: by the line that made their memory grow)");
  }
  const bool touched = event.starts_with("page-faults") || event.starts_with("minor-faults");
  return fmt::format("{}: {}{}\n", base::printable(event), base::counted(weight, "sample"),
                     touched ? ": memory touched, kept or not" : "");
}

std::string short_name(std::string_view name) {
  constexpr std::string_view kCut = "...";
  auto text = base::printable(name);
  if (text.size() <= kLongestName) {
    return text;
  }
  const auto half = (kLongestName - kCut.size()) / 2;
  auto head = half;
  auto tail = text.size() - half;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;  // within a UTF-8 character
  };
  while (head > 0 && continues(head)) {
    --head;
  }
  while (tail < text.size() && continues(tail)) {
    ++tail;
  }
  return text.substr(0, head) + std::string{kCut} + text.substr(tail);
}

std::string csv_text(std::string_view text) {
  if (text.find_first_of("\",\r\n") == std::string_view::npos) {
    return std::string{text};
  }
  std::string quoted{'"'};
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string{c};
  }
  return quoted + '"';
}

}  // namespace pyinject::report
