#include "record/verbs/join_targets.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace pyinject::record {

namespace {

// The words of perf's command line may name any process: its file must not get what the user of
// perf may not read.
bool may_be_recorded(const RunningPerf& perf, const procfs::Status& process, base::Logger& logger) {
  const bool may =
      !perf.user || std::ranges::all_of(process.uids, [&](uid_t uid) { return uid == perf.user; });
  if (!may) {
    logger.warning(
        "pid {}: it belongs to uid {}, and perf record to uid {}, which may not record it: it gets "
        "no Python stacks",
        process.process.value(), process.uids[1], *perf.user);
  }
  return may;
}

// Threads and children that started since perf opened its events have inherited them without the
// BPF program.
void warn_of_births(std::size_t count, base::Logger& logger) {
  if (count != 0) {
    logger.warning(
        "{} started after perf: {} samples may have no Python functions",
        count == 1 ? "1 thread or process" : fmt::format("{} threads or processes", count),
        count == 1 ? "its" : "their");
  }
}

}  // namespace

JoinTargets targets_of(const RunningPerf& perf, base::Logger& logger) {
  JoinTargets targets;
  targets.named = !perf.targets.tasks.empty();
  const auto own = procfs::read_stat(perf.pid);
  const auto began_after_perf = [&](const std::optional<procfs::Stat>& task) {
    return task && own && task->start_time > own->start_time;
  };
  for (const auto piece : base::split(perf.targets.tasks, ',')) {
    const auto number = base::parse_number<pid_t>(piece);
    const auto status = number ? procfs::read_status(base::Pid{*number}) : std::nullopt;
    if (status && may_be_recorded(perf, *status, logger)) {
      targets.roots.push_back(status->process);
    }
  }
  targets.roots = perf.targets.launched ? targets::children_of({perf.pid})
                                        : targets::without_repetitions(targets.roots);
  const bool families = targets.named || perf.targets.launched;
  targets.set = families ? targets::TargetSet::of_families(targets.roots)
                         : targets::TargetSet::of_scope({.user = perf.user});
  targets.others = targets.set.choose(targets::visible_processes());
  std::erase_if(targets.others, [&](base::Pid pid) {
    return pid == perf.pid || std::ranges::find(targets.roots, pid) != targets.roots.end() ||
           (targets.named && !began_after_perf(procfs::read_stat(pid)));  // perf does not record it
  });
  if (families) {
    auto births = targets.others.size();
    for (const auto pid : targets.roots) {
      births += static_cast<std::size_t>(
          std::ranges::count_if(procfs::list_tasks(pid), [&](base::Tid tid) {
            return tid.value() != pid.value() && began_after_perf(procfs::read_stat(pid, tid));
          }));
    }
    warn_of_births(births, logger);
  }
  return targets;
}

}  // namespace pyinject::record
