#include "targets/forked_children.hpp"

#include "base/format.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace pyinject::targets {

namespace {
// A child that is still on can fork during the search; the next round finds its children.
constexpr int kMostRounds = 10;
constexpr std::chrono::seconds kOneExamination{1};
}  // namespace

void ForkedChildren::watch(const Ancestor& target) {
  // An active child has not exec'ed: one ancestor per executable suffices, even for thousands of
  // targets.
  const bool covered = target.executable && std::ranges::any_of(ancestors_, [&](const auto& one) {
                         return one.executable == target.executable && one.since <= target.since;
                       });
  if (!covered) {
    ancestors_.push_back(target);
  }
}

ForkedChildren::Found ForkedChildren::find() {
  Found found;
  for (const auto& ancestor : ancestors_) {
    known_.insert(ancestor.id);
  }
  for (const auto pid : possible_children(ancestors_, known_)) {
    std::optional<base::ProcessId> id;
    try {
      id = procfs::read_process_id(pid);
      auto detection =
          detector_.detect(pid, base::Cancellation{base::Deadline::after(kOneExamination)});
      if (const auto* const refused = std::get_if<python::Refused>(&detection);
          refused != nullptr && refused->refusal.reason == python::Reason::kNotExamined) {
        throw base::Error{python::describe(refused->refusal)};
      }
      auto* target = std::get_if<python::Target>(&detection);
      if (target != nullptr && target->state == python::TrampolineState::kOnByUs &&
          target->owner == session_) {
        logger_.debug("pid {}: forked by an active target", pid.value());
        found.active.push_back(std::move(*target));
      }
      if (id) {
        known_.insert(*id);
      }
    } catch (const std::exception& error) {
      if (id && procfs::ends_now(*id)) {
        continue;
      }
      found.complete = false;
      if (reported_.insert(pid).second) {
        logger_.error(
            "pid {}: cannot examine a child of a target: {}; its trampoline may be on: "
            "perf-pyinject deactivate -p {}",
            pid.value(), error.what(), pid.value());
      }
    }
  }
  return found;
}

bool ForkedChildren::switch_off(Manager& manager) {
  bool all_off = true;
  try {
    for (int round = 0; round < kMostRounds && !ancestors_.empty(); ++round) {
      const auto found = find();
      all_off = all_off && found.complete;
      if (found.active.empty()) {
        return all_off;
      }
      all_off = manager.deactivate_all(found.active) && all_off;
    }
  } catch (const std::exception& error) {
    if (reported_.insert(base::Pid{}).second) {
      logger_.error(
          "cannot look for children that targets have forked: {}; their trampolines may be on: "
          "perf-pyinject status lists them",
          error.what());
    }
    return false;
  }
  return all_off;
}

}  // namespace pyinject::targets
