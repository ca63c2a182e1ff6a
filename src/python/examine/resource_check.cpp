#include "python/examine/resource_check.hpp"

#include "base/text.hpp"
#include "procfs/descriptors.hpp"
#include "procfs/sysctl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace pyinject::python {

namespace {

// 3.12 takes mmap's error for an address; 3.15.2 reports it again and again, then crashes
// (docs/cpython-notes.md).
bool crashes_without_memory(const Version& version) {
  return version.major == 3 && (version.minor == 12 || version.minor >= 15);
}

// CPython keeps its map open: the program has one descriptor less.
std::optional<Refusal> check_descriptors(base::Pid pid, const procfs::Limits& limits,
                                         const procfs::Status& status) {
  constexpr std::uint64_t kLeast = 4;
  if (status.descriptor_slots + kLeast <= limits.open_files) {
    return std::nullopt;
  }
  const auto open = procfs::list_descriptors(pid);
  if (!open) {
    return std::nullopt;  // an activation without a map is undone
  }
  const auto used = static_cast<std::uint64_t>(std::ranges::count_if(
      *open, [&](int number) { return static_cast<std::uint64_t>(number) < limits.open_files; }));
  if (limits.open_files - used >= kLeast) {
    return std::nullopt;
  }
  return Refusal{
      .reason = Reason::kResourceLimit,
      .found = fmt::format("it has {} of {} descriptors in use (RLIMIT_NOFILE)", used,
                           limits.open_files),
      .remedy = fmt::format("CPython opens its perf map: prlimit --pid {} --nofile={}:, or record "
                            "--engine bpf",
                            pid.value(), 2 * std::max<std::uint64_t>(limits.open_files, kLeast))};
}

}  // namespace

std::optional<Refusal> check_address_space(base::Pid pid, const Version& version,
                                           const procfs::Limits& limits,
                                           const std::vector<procfs::Mapping>& maps,
                                           std::size_t most_mappings) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20U;  // 16 arenas
  constexpr std::size_t kLeastMappings = 64;
  if (maps.size() + kLeastMappings > most_mappings) {
    return Refusal{.reason = Reason::kResourceLimit,
                   .found = fmt::format("it has {} of {} mappings (vm.max_map_count)", maps.size(),
                                        most_mappings),
                   .remedy =
                       "trampolines need more: sysctl vm.max_map_count, or record --engine "
                       "bpf"};
  }
  if (limits.address_space == procfs::Limits::kUnlimited) {
    return std::nullopt;
  }
  std::uint64_t used = 0;
  for (const auto& mapping : maps) {
    used += mapping.end.value() - mapping.begin.value();
  }
  const bool crashes = crashes_without_memory(version);
  if (!crashes && used + kLeast <= limits.address_space) {
    return std::nullopt;
  }
  return Refusal{
      .reason = Reason::kResourceLimit,
      .found = fmt::format("it uses {} of {} MB of memory that it may map (RLIMIT_AS)",
                           used / 1'000'000, limits.address_space / 1'000'000),
      .remedy = fmt::format("{}: prlimit --pid {} --as=unlimited, or record --engine bpf",
                            crashes ? fmt::format("Python {}.{} crashes if it cannot map memory "
                                                  "for trampolines",
                                                  version.major, version.minor)
                                    : "trampolines need more",
                            pid.value())};
}

std::optional<Refusal> check_resources(base::Pid pid, const Version& version,
                                       const procfs::Status& status,
                                       const std::vector<procfs::Mapping>& maps) {
  const auto limits = procfs::read_limits(pid);
  if (!limits) {
    return std::nullopt;
  }
  if (auto refusal = check_descriptors(pid, *limits, status)) {
    return refusal;
  }
  const auto most = procfs::read_sysctl("vm.max_map_count");
  return check_address_space(pid, version, *limits, maps,
                             base::parse_number<std::size_t>(most.value_or(""))
                                 .value_or(std::numeric_limits<std::size_t>::max()));
}

}  // namespace pyinject::python
