#include "procfs/usage.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/read_process_file.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace pyinject::procfs {

std::optional<ThreadUsage> parse_thread_usage(std::string_view stat, std::string_view schedstat) {
  const auto close = stat.rfind(')');
  if (close == std::string_view::npos) {
    return std::nullopt;
  }
  // fields[N - 3] is field N of the manual page.
  const auto fields = base::split(base::trim(stat.substr(close + 1)), ' ');
  constexpr std::size_t kMinor = 10 - 3;
  constexpr std::size_t kMajor = 12 - 3;
  if (fields.size() <= kMajor) {
    return std::nullopt;
  }
  const auto minor = base::parse_number<std::uint64_t>(fields[kMinor]);
  const auto major = base::parse_number<std::uint64_t>(fields[kMajor]);
  if (!minor || !major) {
    return std::nullopt;
  }
  ThreadUsage usage{.state = fields[0].empty() ? '?' : fields[0].front(),
                    .minor_faults = *minor,
                    .major_faults = *major};
  const auto times = base::split(base::trim(schedstat), ' ');
  if (times.size() >= 2) {
    usage.on_cpu = std::chrono::nanoseconds{base::parse_number<std::int64_t>(times[0]).value_or(0)};
    usage.for_cpu =
        std::chrono::nanoseconds{base::parse_number<std::int64_t>(times[1]).value_or(0)};
    usage.arrivals = times.size() > 2 ? base::parse_number<std::uint64_t>(times[2]).value_or(0) : 0;
  }
  return usage;
}

std::optional<ThreadUsage> read_thread_usage(base::Pid pid, base::Tid tid) {
  const auto path = fmt::format("/proc/{}/task/{}/", pid.value(), tid.value());
  const auto stat = read_process_file(path + "stat");
  const auto schedstat = read_process_file(path + "schedstat");
  return stat ? parse_thread_usage(*stat, schedstat.value_or("")) : std::nullopt;
}

std::optional<MachineUsage> parse_machine_usage(std::string_view text) {
  const auto words = base::split(base::trim(text.substr(0, text.find('\n'))), ' ');
  // "cpu", an empty word, user, nice, system, idle, iowait, irq, softirq, steal.
  constexpr std::size_t kFirst = 2;
  constexpr std::size_t kCount = 8;
  if (words.size() < kFirst + kCount || words[0] != "cpu") {
    return std::nullopt;
  }
  std::array<std::uint64_t, kCount> ticks{};
  for (std::size_t i = 0; i < kCount; ++i) {
    ticks.at(i) = base::parse_number<std::uint64_t>(words[kFirst + i]).value_or(0);
  }
  return MachineUsage{.all = std::accumulate(ticks.begin(), ticks.end(), std::uint64_t{0}),
                      .idle = ticks[3] + ticks[4],
                      .stolen = ticks.back()};
}

std::optional<MachineUsage> read_machine_usage() {
  constexpr std::size_t kMost = std::size_t{4} << 20;
  const auto text = base::read_file("/proc/stat", kMost);
  return text ? parse_machine_usage(*text) : std::nullopt;
}

DescendantsUsage read_descendants_usage(base::Pid pid) {
  std::multimap<base::Pid, Stat> by_parent;
  for (const auto each : list_processes()) {
    if (auto stat = read_stat(each)) {
      const auto parent = stat->parent;
      by_parent.emplace(parent, *std::move(stat));
    }
  }
  static const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto time_of = [](std::uint64_t ticks) {
    return std::chrono::nanoseconds{ticks * 1'000'000'000 / per_second};
  };
  const auto root = read_stat(pid);
  auto ticks = root ? root->waited_ticks : 0;
  DescendantsUsage usage;
  std::vector<base::Pid> parents{pid};
  while (!parents.empty()) {
    const auto [first, last] = by_parent.equal_range(parents.back());
    parents.pop_back();
    for (auto each = first; each != last; ++each) {
      ticks += each->second.cpu_ticks + each->second.waited_ticks;
      ++usage.processes;
      usage.living[each->second.pid] = time_of(each->second.cpu_ticks);
      parents.push_back(each->second.pid);
    }
    by_parent.erase(first, last);  // pids that are reused meanwhile may make a circle
  }
  usage.on_cpu = time_of(ticks);
  return usage;
}

namespace {

// LABEL: "\nVmSwap:".
std::optional<std::uint64_t> read_kilobytes(base::Pid pid, std::string_view label) {
  const auto text = read_process_file(fmt::format("/proc/{}/status", pid.value()));
  const auto at = text ? text->find(label) : std::string::npos;
  if (at == std::string::npos) {
    return std::nullopt;
  }
  auto value = std::string_view{*text}.substr(at + label.size());
  value = base::trim(value.substr(0, value.find('\n')));
  return base::parse_number<std::uint64_t>(value.substr(0, value.find(' ')));
}

}  // namespace

std::optional<std::uint64_t> read_swapped(base::Pid pid) {
  return read_kilobytes(pid, "\nVmSwap:");
}

std::optional<std::uint64_t> read_resident(base::Pid pid) {
  return read_kilobytes(pid, "\nVmRSS:");
}

}  // namespace pyinject::procfs
