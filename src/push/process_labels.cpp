#include "push/process_labels.hpp"

#include "base/host_name.hpp"
#include "base/text.hpp"
#include "procfs/cgroup.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/pid.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <unistd.h>

namespace pyinject::push {

namespace {

constexpr std::size_t kContainerDigits = 64;
constexpr std::size_t kUidDigits = 36;

bool is_digit(char one) { return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'f'); }

// The last 64 characters of "docker-<id>", "cri-containerd-<id>" or "<id>".
std::string container_in(std::string_view part) {
  if (part.ends_with(".scope")) {
    part.remove_suffix(std::string_view{".scope"}.size());
  }
  if (part.size() < kContainerDigits) {
    return {};
  }
  const auto rest = part.substr(0, part.size() - kContainerDigits);
  part.remove_prefix(rest.size());
  const bool separate = rest.empty() || rest.ends_with('-');
  return separate && std::ranges::all_of(part, is_digit) ? std::string{part} : std::string{};
}

// "pod<uid>", "kubepods-burstable-pod<uid with underscores>.slice".
std::string pod_in(std::string_view part) {
  const auto at = part.find("pod", part.starts_with("kubepods") ? 8 : 0);
  if (at == std::string_view::npos || part.size() < at + 3 + kUidDigits) {
    return {};
  }
  std::string uid{part.substr(at + 3, kUidDigits)};
  std::ranges::replace(uid, '_', '-');
  const bool valid = std::ranges::all_of(uid, [](char c) { return c == '-' || is_digit(c); });
  return valid && std::ranges::count(uid, '-') == 4 ? uid : std::string{};
}

// A user's own manager is the parent of his units, not a service.
std::string unit_in(std::string_view part) {
  constexpr std::string_view kSuffix = ".service";
  if (!part.ends_with(kSuffix) || part.size() == kSuffix.size() || part.starts_with("user@")) {
    return {};
  }
  part.remove_suffix(kSuffix.size());
  return std::string{part};
}

}  // namespace

CgroupFacts facts_of_cgroup(std::string_view path) {
  CgroupFacts facts;
  for (const auto part : base::split(path, '/')) {
    if (auto pod = pod_in(part); !pod.empty()) {
      facts.pod = std::move(pod);
    }
    if (auto container = container_in(part); !container.empty()) {
      facts.container = std::move(container);
      facts.unit.clear();  // that of the container's runtime
    }
    if (auto unit = unit_in(part); !unit.empty()) {
      facts.unit = std::move(unit);
    }
  }
  if (!facts.pod.empty()) {
    facts.unit.clear();
  }
  return facts;
}

Labels labels_of_process(const RecordedProcess& process) {
  CgroupFacts facts;
  std::string service;
  if (process.lives) {
    const base::Pid pid{static_cast<pid_t>(process.pid)};
    facts = facts_of_cgroup(procfs::read_cgroup(pid).value_or(""));
    service = procfs::read_environ_value(pid, "OTEL_SERVICE_NAME").value_or("");
  }
  if (service.empty()) {
    service = facts.unit.empty() ? process.name : facts.unit;
  }
  Labels labels;
  set_label(labels, "service_name", service.empty() ? "unknown" : label_value(service));
  set_label(labels, "hostname", label_value(base::host_name()));
  set_label(labels, "container_id", facts.container);
  set_label(labels, "pod_uid", facts.pod);
  return labels;
}

std::optional<LiveProcess> live_process(std::uint32_t pid) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const base::Pid process{static_cast<pid_t>(pid)};
  const auto stat = procfs::read_stat(process);
  const auto status = procfs::read_status(process);
  if (!stat || !status) {
    return std::nullopt;
  }
  const auto tick = kSecond / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return LiveProcess{.started = stat->start_time * tick, .user = status->uids[0]};
}

}  // namespace pyinject::push
