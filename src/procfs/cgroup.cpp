#include "procfs/cgroup.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

namespace pyinject::procfs {

namespace {

constexpr std::size_t kMostOfFile = 4096;

// The latter where other hierarchies are mounted, too.
constexpr std::array<std::string_view, 2> kUnified{"/sys/fs/cgroup/", "/sys/fs/cgroup/unified/"};
constexpr std::string_view kCpu = "/sys/fs/cgroup/cpu/";  // version 1

std::string text_of_cgroup(base::Pid pid) {
  constexpr std::size_t kMost = 65536;
  return base::read_file(fmt::format("/proc/{}/cgroup", pid.value()), kMost).value_or("");
}

// The directories below MOUNT of CGROUP and its ancestors, until FOUND returns true.
void walk_up(std::string_view mount, std::string cgroup,
             const std::function<bool(const std::string& directory)>& found) {
  while (!found(fmt::format("{}{}", mount, cgroup)) && !cgroup.empty()) {
    const auto slash = cgroup.rfind('/');
    cgroup.resize(slash == std::string::npos ? 0 : slash);
  }
}

std::string read_control(const std::string& directory, std::string_view name) {
  return base::read_file(fmt::format("{}/{}", directory, name), kMostOfFile).value_or("");
}

}  // namespace

std::optional<std::string> parse_cgroup(std::string_view text, std::string_view controller) {
  for (const auto line : base::split(text, '\n')) {
    const auto number = line.find(':');
    const auto slash = line.find(":/");
    if (slash == std::string_view::npos || slash <= number) {
      continue;
    }
    const auto controllers = base::split(line.substr(number + 1, slash - number - 1), ',');
    if (std::ranges::find(controllers, controller) != controllers.end()) {
      return std::string{line.substr(slash + 2)};
    }
  }
  return std::nullopt;
}

std::optional<std::string> read_cgroup(base::Pid pid) { return parse_cgroup(text_of_cgroup(pid)); }

std::optional<std::string> read_frozen(base::Pid pid) {
  std::optional<std::string> frozen;
  for (const auto mount : kUnified) {
    walk_up(mount, read_cgroup(pid).value_or(""), [&](const std::string& directory) {
      if (base::trim(read_control(directory, "cgroup.freeze")) == "1") {
        frozen = directory;
      }
      return frozen.has_value();
    });
    if (frozen) {
      break;
    }
  }
  return frozen;
}

std::optional<CpuLimit> parse_cpu_limit(std::string_view max, std::string_view stat) {
  const auto words = base::split(base::trim(max), ' ');
  if (words.size() != 2) {
    return std::nullopt;
  }
  const auto quota = base::parse_number<long>(words[0]);
  const auto period = base::parse_number<long>(words[1]);
  if (!quota || *quota <= 0 || !period || *period <= 0) {
    return std::nullopt;
  }
  CpuLimit limit{.cpus = static_cast<double>(*quota) / static_cast<double>(*period)};
  for (const auto line : base::split(stat, '\n')) {
    const auto blank = std::min(line.find(' '), line.size());
    const auto value = base::parse_number<long>(base::trim(line.substr(blank)));
    if (value && line.starts_with("throttled_usec ")) {
      limit.throttled = std::chrono::microseconds{*value};
    } else if (value && line.starts_with("throttled_time ")) {
      limit.throttled = std::chrono::nanoseconds{*value};
    }
  }
  return limit;
}

std::vector<CpuLimit> read_cpu_limits(base::Pid pid) {
  std::vector<CpuLimit> limits;
  const auto text = text_of_cgroup(pid);
  const auto add = [&](const std::string& directory, const std::string& max) {
    if (auto limit = parse_cpu_limit(max, read_control(directory, "cpu.stat"))) {
      limit->cgroup = directory;
      limits.push_back(std::move(*limit));
    }
    return false;
  };
  for (const auto mount : kUnified) {
    walk_up(mount, parse_cgroup(text).value_or(""), [&](const std::string& directory) {
      return add(directory, read_control(directory, "cpu.max"));
    });
  }
  walk_up(kCpu, parse_cgroup(text, "cpu").value_or(""), [&](const std::string& directory) {
    return add(directory,
               fmt::format("{} {}", base::trim(read_control(directory, "cpu.cfs_quota_us")),
                           base::trim(read_control(directory, "cpu.cfs_period_us"))));
  });
  return limits;
}

}  // namespace pyinject::procfs
