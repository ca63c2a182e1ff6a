#include "inspect/task_history.hpp"

#include <algorithm>
#include <optional>

namespace pyinject::inspect {

namespace {

bool is_in_same_await(const python::AsyncTask& one, const python::AsyncTask& other) {
  const auto at_same_line = [](const python::AsyncFrame& a, const python::AsyncFrame& b) {
    return a.names == b.names && a.line == b.line;  // a list among its variables may grow
  };
  return one.loop == other.loop && one.name == other.name &&
         std::ranges::equal(one.awaits, other.awaits, at_same_line) &&
         one.waits_for == other.waits_for;
}

bool can_stay(const python::AsyncTask& task) {
  return task.certain && task.state == python::AsyncTask::State::kPending && task.waits_for != 0;
}

}  // namespace

void TaskHistory::add(ProcessSnapshot& snapshot, std::chrono::nanoseconds now) {
  auto& before = processes_[snapshot.pid];
  std::map<std::uint64_t, Seen> seen;
  for (const auto& task : snapshot.tasks) {
    if (!can_stay(task)) {
      continue;
    }
    const auto known = before.find(task.address);
    const bool same = known != before.end() && is_in_same_await(known->second.task, task);
    const auto since = same ? known->second.since : now;
    seen.emplace(task.address, Seen{.task = task, .since = since});
    if (same) {
      snapshot.same_await.emplace(task.address, now - since);
    }
  }
  before = std::move(seen);
}

}  // namespace pyinject::inspect
