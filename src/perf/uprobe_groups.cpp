// Identifies the owner of a group of uprobe events, and checks whether it still runs.
#include "base/text.hpp"
#include "perf/uprobe_events.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <unistd.h>

namespace pyinject::perf {

namespace {

constexpr std::string_view kPrefix = "perf_pyinject_";

// A zombie counts as exited.
bool is(const std::optional<procfs::Stat>& stat, std::uint64_t start_time) {
  return stat && stat->start_time == start_time && stat->state != 'Z' && stat->state != 'X';
}

// Whether any visible process has this pid in its own pid namespace.
bool is_anywhere(const GroupOwner& owner) {
  std::vector<base::Pid> processes;
  try {
    processes = procfs::list_processes();
  } catch (const base::Error&) {
    return true;  // unknown: keep its events
  }
  return std::ranges::any_of(processes, [&owner](base::Pid pid) {
    if (!is(procfs::read_stat(pid), owner.id.start_time)) {
      return false;
    }
    const auto status = procfs::read_status(pid);
    return status && procfs::inner_pid(*status) == owner.id.pid;
  });
}

}  // namespace

std::string group_name(const GroupOwner& owner) {
  return fmt::format("{}{}_{}_{}", kPrefix, owner.id.pid.value(), owner.id.start_time,
                     owner.pid_namespace);
}

std::optional<GroupOwner> parse_group_name(std::string_view group) {
  if (!group.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const auto pieces = base::split(group.substr(kPrefix.size()), '_');
  if (pieces.size() != 3) {
    return std::nullopt;
  }
  const auto pid = base::parse_number<pid_t>(pieces[0]);
  const auto start = base::parse_number<std::uint64_t>(pieces[1]);
  const auto space = base::parse_number<std::uint64_t>(pieces[2]);
  if (!pid || *pid <= 0 || !start || !space) {
    return std::nullopt;
  }
  return GroupOwner{.id = {.pid = base::Pid{*pid}, .start_time = *start}, .pid_namespace = *space};
}

std::vector<ListedEvent> parse_uprobe_events(std::string_view text) {
  std::vector<ListedEvent> events;
  for (auto line : base::split(text, '\n')) {
    // "p:GROUP/NAME FILE:OFFSET ..."; "r" for return probes
    if (!line.starts_with("p:") && !line.starts_with("r:")) {
      continue;
    }
    line = line.substr(2, line.find(' ') - 2);
    const auto slash = line.find('/');
    if (slash != std::string_view::npos) {
      events.push_back({.group = std::string{line.substr(0, slash)},
                        .name = std::string{line.substr(slash + 1)}});
    }
  }
  return events;
}

GroupOwner this_owner() {
  const auto id = procfs::read_process_id(base::Pid{::getpid()});
  const auto space = id ? procfs::own_namespace_number(procfs::Namespace::kPid) : std::nullopt;
  if (!space) {
    throw base::SystemError{"cannot stat /proc/self", errno};
  }
  return {.id = *id, .pid_namespace = *space};
}

bool is_alive(const GroupOwner& owner) {
  const auto own = this_owner();
  if (owner.pid_namespace == own.pid_namespace) {
    return is(procfs::read_stat(owner.id.pid), owner.id.start_time);
  }
  // A process outside of this container is invisible, so it cannot be ruled out.
  return !procfs::in_first_pid_namespace() || is_anywhere(owner);
}

}  // namespace pyinject::perf
