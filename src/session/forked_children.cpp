#include "session/forked_children.hpp"

#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/procfs/stat.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::session {

namespace {
// A child that is still on can fork while we look; its own children are found in the next round.
constexpr int kMostRounds = 10;
}  // namespace

void ForkedChildren::watch(const Ancestor& target) {
  // A child that is active has not executed another program: one ancestor for each is enough, and
  // thousands of targets do not make it more.
  const bool covered = target.executable && std::ranges::any_of(ancestors_, [&](const auto& one) {
                         return one.executable == target.executable && one.since <= target.since;
                       });
  if (!covered) {
    ancestors_.push_back(target);
  }
}

bool ForkedChildren::switch_off(Manager& manager) {
  for (const auto& ancestor : ancestors_) {
    known_.insert(ancestor.id);
  }
  bool all_off = true;
  for (int round = 0; round < kMostRounds && !ancestors_.empty(); ++round) {
    std::vector<python::Target> found;
    for (const auto pid : possible_children(ancestors_, known_)) {
      if (const auto id = procfs::read_process_id(pid)) {
        known_.insert(*id);
      }
      auto detection = detector_.detect(pid);
      auto* target = std::get_if<python::Target>(&detection);
      if (target != nullptr && target->state == python::TrampolineState::kOnByUs &&
          target->owner == session_) {
        logger_.debug("pid {}: forked by a target while that was active", pid.value());
        found.push_back(std::move(*target));
      }
    }
    if (found.empty()) {
      return all_off;
    }
    all_off = manager.deactivate_all(found) && all_off;
  }
  return all_off;
}

}  // namespace pyinject::session
