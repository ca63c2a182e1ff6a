#include "report/thread_names.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace pyinject::report {

void ThreadNames::name(std::uint64_t time, std::uint32_t tid, std::string name) {
  threads_[tid].push_back({.time = time, .name = std::move(name)});
}

void ThreadNames::start(std::uint64_t time, std::uint32_t parent_tid, std::uint32_t tid) {
  if (parent_tid != 0 && parent_tid != tid) {
    threads_[tid].push_back({.time = time, .parent = parent_tid});
  }
}

void ThreadNames::complete() {
  for (auto& [tid, changes] : threads_) {
    std::ranges::stable_sort(changes, {}, &Change::time);
  }
  // A thread can only be named after one that was started before it.
  std::vector<std::pair<std::uint64_t, Change*>> starts;
  std::unordered_map<Change*, std::uint32_t> parents;
  for (auto& [tid, changes] : threads_) {
    for (auto& change : changes) {
      if (change.parent != 0) {
        starts.emplace_back(change.time, &change);
      }
    }
  }
  std::ranges::sort(starts, {}, [](const auto& start) { return start.first; });
  for (const auto& [time, change] : starts) {
    change->name = at(time, change->parent);
  }
}

const std::string& ThreadNames::at(std::uint64_t time, std::uint32_t tid) const {
  static const std::string none;
  const auto thread = threads_.find(tid);
  if (thread == threads_.end()) {
    return none;
  }
  const auto& changes = thread->second;
  const auto after = std::ranges::upper_bound(changes, time, {}, &Change::time);
  // perf reports the names of running threads with its own time, or none.
  return after == changes.begin() ? changes.front().name : std::prev(after)->name;
}

}  // namespace pyinject::report
