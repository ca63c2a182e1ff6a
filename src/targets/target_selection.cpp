#include "pyinject/targets/target_selection.hpp"

#include "procfs/executable.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"

#include <algorithm>
#include <map>

#include <unistd.h>

namespace pyinject::targets {

namespace {

// The chain of parents is bounded: /proc is read process by process and may be inconsistent.
bool descends(base::Pid pid, const std::map<base::Pid, procfs::Stat>& all, base::Pid ancestor) {
  for (std::size_t step = 0; step < all.size(); ++step) {
    const auto found = all.find(pid);
    if (found == all.end()) {
      return false;
    }
    pid = found->second.parent;
    if (pid == ancestor) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<base::Pid> without_repetitions(const std::vector<base::Pid>& pids) {
  std::vector<base::Pid> result;
  for (const auto pid : pids) {
    if (std::ranges::find(result, pid) == result.end()) {
      result.push_back(pid);
    }
  }
  return result;
}

std::vector<base::Pid> visible_processes() {
  std::vector<base::Pid> result;
  for (const auto pid : procfs::list_processes()) {
    const auto stat = procfs::read_stat(pid);
    if (stat && !stat->kernel_thread() && pid.value() != ::getpid()) {
      result.push_back(pid);
    }
  }
  return result;
}

std::vector<base::Pid> children_of(const std::vector<base::Pid>& pids) {
  auto children = visible_processes();
  std::erase_if(children, [&pids](base::Pid pid) {
    const auto stat = procfs::read_stat(pid);
    return !stat || std::ranges::find(pids, stat->parent) == pids.end();
  });
  return children;
}

Ancestor ancestor_now(base::ProcessId id) {
  // The kernel rounds start times down; one more tick is on the safe side.
  return {.id = id,
          .since = procfs::ticks_since_boot() - 1,
          .executable = procfs::executable_of(id.pid)};
}

std::vector<base::Pid> possible_children(const std::vector<Ancestor>& ancestors,
                                         const std::set<base::ProcessId>& known) {
  std::map<base::Pid, procfs::Stat> all;
  for (const auto pid : procfs::list_processes()) {
    if (auto stat = procfs::read_stat(pid); stat && !stat->kernel_thread()) {
      all.emplace(pid, *std::move(stat));
    }
  }
  std::vector<base::Pid> result;
  for (const auto& entry : all) {
    const base::Pid pid = entry.first;
    const procfs::Stat& stat = entry.second;
    if (pid.value() == ::getpid() || known.contains({.pid = pid, .start_time = stat.start_time})) {
      continue;
    }
    const auto executable = procfs::executable_of(pid);
    const bool possible = std::ranges::any_of(ancestors, [&](const Ancestor& ancestor) {
      return stat.start_time >= ancestor.since &&
             ((executable && executable == ancestor.executable) ||
              descends(pid, all, ancestor.id.pid));
    });
    if (possible) {
      result.push_back(pid);
    }
  }
  return result;
}

}  // namespace pyinject::targets
