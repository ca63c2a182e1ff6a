#include "record/roster.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

#include <unistd.h>

namespace pyinject::record {

namespace {

bool contains(const std::vector<base::Pid>& pids, base::Pid pid) {
  return std::ranges::find(pids, pid) != pids.end();
}

}  // namespace

Roster::Roster(const RecordPlan& plan)
    : plan_{plan},
      targets_{plan.whole_system() ? targets::TargetSet::of_scope(plan.scope())
                                   : targets::TargetSet::of_families(plan.pids())},
      with_children_{!plan.perf_options->leaves_out_children} {}

void Roster::add_command(base::Pid command, bool family) {
  for_perf_ = {command};
  if (family) {
    targets_ = targets::TargetSet::of_families(for_perf_);
    (void)targets_.choose(targets::visible_processes());
  }
}

void Roster::choose() {
  const bool named = !plan_.whole_system() && !plan_.families();
  chosen_ = named ? targets::without_repetitions(plan_.pids())
                  : targets_.choose(targets::visible_processes());
}

std::vector<base::Pid> Roster::add_roots(const std::vector<base::Pid>& roots) {
  std::vector<base::Pid> others;
  std::ranges::copy_if(chosen_, std::back_inserter(others),
                       [&](base::Pid pid) { return !contains(roots, pid); });
  for (const auto pid : roots) {
    if (!contains(chosen_, pid)) {
      chosen_.push_back(pid);
    }
  }
  return others;
}

std::vector<base::Pid> Roster::possible_pythons() const {
  auto pids = chosen_;
  std::erase_if(pids, [this](base::Pid pid) { return no_pythons_.contains(pid); });
  return pids;
}

void Roster::tell_perf_of(base::Pid pid) {
  if (const auto id = procfs::read_process_id(pid)) {
    for_perf_.push_back(pid);
    watch_.add(*id);
  }
}

void Roster::tell_perf_of_chosen() {
  for (const auto pid : chosen_) {
    tell_perf_of(pid);
  }
}

// The targets and their descendants that have not exited, without perf: it is a descendant if a
// target started this tool.
std::vector<base::Pid> Roster::families() {
  auto pids = targets_.choose(targets::visible_processes());
  std::erase_if(pids, [](base::Pid pid) {
    const auto stat = procfs::read_stat(pid);
    return !stat || stat->state == 'Z' || stat->parent.value() == ::getpid();
  });
  return pids;
}

std::vector<base::Pid> Roster::newborn() {
  auto pids = families();
  std::erase_if(pids, [this](base::Pid pid) { return contains(chosen_, pid); });
  return pids;
}

bool Roster::add_newborn() {
  const auto pids = newborn();
  for (const auto pid : pids) {
    chosen_.push_back(pid);
    tell_perf_of(pid);
  }
  return !pids.empty();
}

bool Roster::drop_exited(base::Logger& logger) {
  if (!plan_.families()) {
    return false;
  }
  constexpr std::chrono::milliseconds kUntilItHasExited{20};  // perf noticed the exit earlier
  if (watch_.all_exited_within(kUntilItHasExited)) {
    return false;
  }
  const auto before = for_perf_.size();
  for_perf_ = watch_.running();
  logger.debug("perf is started again: {} exited",
               base::counted(before - for_perf_.size(), "process has", "processes have"));
  return for_perf_.size() < before;
}

std::set<base::Tid> Roster::tasks() {
  std::set<base::Tid> tasks;
  if (plan_.whole_system() || !with_children_) {
    return tasks;
  }
  for (const auto pid : plan_.families() ? families() : targets::children_of(for_perf_)) {
    tasks.insert(base::Tid{pid.value()});
  }
  for (const auto pid : for_perf_) {
    const auto tids = procfs::list_tasks(pid);
    tasks.insert(tids.begin(), tids.end());
  }
  return tasks;
}

}  // namespace pyinject::record
