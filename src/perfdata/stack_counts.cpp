#include "pyinject/perfdata/stack_counts.hpp"

#include "base/text.hpp"
#include "perfdata/section_lines.hpp"
#include "perfdata/stack_counts_section.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::perfdata {

namespace {

struct Words {
  std::string_view name;
  std::string_view lack;  // empty: nothing is missing
};
// By StackKind.
constexpr std::array<Words, kStackKinds> kWords{{
    {"complete", ""},
    {"no_python", ""},
    {"cut", "cut at the root (the marks there say why)"},
    {"unnamed",
     "with functions that have no name, marked [unnamed Python functions] (--engine bpf "
     "names them)"},
    {"unread", "that could not be read (a lower -F helps if records were lost)"},
    {"before_attach", "from before or after the attach"},
    {"later_program", "of a program that was executed later (record it by itself)"},
    {"other_program", "of other programs"},
}};

constexpr std::string_view kUnmarkedCut =
    "cut at the root (more than 512 functions, or memory that was not there)";

// The counts of a damaged file may have any sum.
std::uint64_t sum(std::uint64_t one, std::uint64_t other) {
  std::uint64_t both = 0;
  return __builtin_add_overflow(one, other, &both) ? ~std::uint64_t{0} : both;
}

}  // namespace

std::string_view name(StackKind kind) { return kWords.at(static_cast<std::size_t>(kind)).name; }

void StackCounts::add(const StackCounts& other) {
  std::ranges::transform(counts, other.counts, counts.begin(), sum);
}

std::uint64_t StackCounts::all() const {
  std::uint64_t all = 0;
  for (const auto count : counts) {
    all = sum(all, count);
  }
  return all;
}

std::string what_lacks(const StackCounts& counts, bool marked) {
  std::string text;
  for (std::size_t i = 0; i < kStackKinds; ++i) {
    if (counts.counts.at(i) != 0 && !kWords.at(i).lack.empty()) {
      const bool unmarked = !marked && static_cast<StackKind>(i) == StackKind::kCut;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", base::grouped(counts.counts.at(i)),
                          unmarked ? kUnmarkedCut : kWords.at(i).lack);
    }
  }
  return text;
}

std::string incompleteness(const StackCounts& counts, bool marked) {
  double all = 0;  // not the sum of integers, which is limited
  for (const auto count : counts.counts) {
    all += static_cast<double>(count);
  }
  const auto whole = static_cast<double>(counts.of(StackKind::kComplete)) +
                     static_cast<double>(counts.of(StackKind::kNoPython));
  const auto others = static_cast<double>(counts.of(StackKind::kOtherProgram));
  constexpr double kMostLacking = 0.01;
  const bool none = whole == 0 && others != 0;  // no recorded Python process ran, or it was refused
  if (!none && all - whole - others <= kMostLacking * all) {
    return {};
  }
  return fmt::format("{:.1f} % of the {} samples lack Python functions: {}",
                     100 * (all - whole) / all, base::grouped(counts.all()),
                     what_lacks(counts, marked));
}

std::string to_section(const StackCounts& counts) {
  std::string text;
  for (std::size_t i = 0; i < kStackKinds; ++i) {
    text += fmt::format("{} {}\n", kWords.at(i).name, counts.counts.at(i));
  }
  return text;
}

StackCounts parse_stack_counts(Bytes section) {
  StackCounts counts;
  for_each_line(section, [&](std::string_view name, std::string_view count) {
    if (const auto words = std::ranges::find(kWords, name, &Words::name); words != kWords.end()) {
      const auto at = static_cast<std::size_t>(words - kWords.begin());
      counts.counts.at(at) = base::parse_number<std::uint64_t>(count).value_or(0);
    }
  });
  return counts;
}

}  // namespace pyinject::perfdata
