#include "base/byte_cursor.hpp"
#include "perfdata/build_id_table.hpp"
#include "perfdata/input_impl.hpp"
#include "perfdata/names_section.hpp"
#include "perfdata/stack_counts_section.hpp"

namespace pyinject::perfdata {

std::optional<std::vector<std::byte>> Features::tracing_data() const {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20U;  // mostly the kernel's symbols
  return input_.feature(kFeatureTracingData, kMost);
}

std::vector<BuildId> Features::build_ids() const {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20U;
  const auto table = input_.feature(kFeatureBuildId, kMost);
  return table ? parse_build_ids(*table) : std::vector<BuildId>{};
}

std::vector<std::vector<std::byte>> Features::images() const {
  const auto section = input_.feature(kFeatureNames, kMostNames);
  return section ? parse_images(*section) : std::vector<std::vector<std::byte>>{};
}

StackCounts Features::stack_counts() const {
  const auto section = input_.feature(kFeatureStackCounts, kMostStackCounts);
  return section ? parse_stack_counts(*section) : StackCounts{};
}

TargetGaps Features::target_gaps() const {
  const auto section = input_.feature(kFeatureStackCounts, kMostStackCounts);
  return section ? parse_target_gaps(*section) : TargetGaps{};
}

// linux, tools/perf/util/header.c, write_clock_data().
std::optional<ClockData> Features::clock_data() const {
  constexpr std::size_t kSize = 24;
  constexpr std::uint32_t kVersion = 1;
  const auto bytes = input_.feature(kFeatureClockData, kSize);
  if (!bytes) {
    return std::nullopt;
  }
  base::ByteCursor cursor{*bytes};
  const auto version = cursor.number<std::uint32_t>();
  const ClockData data{.clock = cursor.number<std::uint32_t>(),
                       .wall_time = cursor.number<std::uint64_t>(),
                       .clock_time = cursor.number<std::uint64_t>()};
  return cursor.failed() || version != kVersion ? std::nullopt : std::optional{data};
}

}  // namespace pyinject::perfdata
