#include "record/native_refresh.hpp"

#include "procfs/maps.hpp"
#include "procfs/tasks.hpp"

#include <algorithm>
#include <vector>

namespace pyinject::record {

namespace {

using std::chrono::milliseconds;
using watch::Change;

// The dynamic loader maps several files one after another.
constexpr milliseconds kUntilScan{5};
constexpr unsigned kTimesLonger = 9;  // the pause after a scan, compared with the scan
// A scan that takes longer has compiled the table of a file, which it does once.
constexpr milliseconds kLongestPause{50};
// After a sample in an unknown mapping that is not in /proc/PID/maps either, twice as long each
// time.
constexpr milliseconds kAskAgain{50};
constexpr unsigned kMostDoublings = 7;

}  // namespace

NativeRefresh::NativeRefresh(bpf::NativeTables& tables, base::Logger& logger)
    : tables_{tables}, watch_{watch::watch_processes(logger)} {}

void NativeRefresh::add_all(const base::Cancellation& cancel) {
  all_ = true;
  for (const auto pid : procfs::list_processes()) {
    if (cancel.stopped()) {
      return;
    }
    (void)tables_.scan(pid);
  }
}

void NativeRefresh::want(base::Pid pid, Clock::time_point due, bool asked) {
  const auto [found, is_new] =
      waiting_.try_emplace(pid.value(), Waiting{.due = due, .asked = asked});
  if (!is_new) {
    found->second.due = std::min(found->second.due, due);
    found->second.asked = found->second.asked && asked;
  }
}

void NativeRefresh::ask(base::Pid pid) {
  const auto vain = asked_in_vain_.find(pid.value());
  const auto doublings = vain == asked_in_vain_.end() ? 0 : std::min(vain->second, kMostDoublings);
  want(pid, Clock::now() + (doublings == 0 ? milliseconds{0} : kAskAgain * (1U << doublings)),
       true);
}

void NativeRefresh::note(const watch::ProcessEvent& event) {
  switch (event.change) {
    case Change::kForked:
      tables_.forked(event.parent, event.pid);
      return;
    case Change::kExec:
    case Change::kMapped:
    case Change::kGeneratedCode:
    case Change::kAppeared:
      if (all_ || tables_.knows(event.pid)) {
        asked_in_vain_.erase(event.pid.value());
        want(event.pid, Clock::now() + kUntilScan, false);
      }
      return;
    case Change::kExited:
      if (tables_.knows(event.pid)) {
        // Its other threads may still run, and one of them may exec.
        const auto maps = procfs::read_maps(event.pid);
        if (!maps || maps->empty()) {
          tables_.forget(event.pid);
          waiting_.erase(event.pid.value());
          asked_in_vain_.erase(event.pid.value());
        }
      }
      return;
    case Change::kNamed:
    case Change::kWritten:
      return;
  }
}

milliseconds NativeRefresh::until_due(milliseconds most) const {
  if (waiting_.empty()) {
    return most;
  }
  const auto next =
      std::ranges::min_element(waiting_, {}, [](const auto& each) { return each.second.due; });
  const auto left = std::max(next->second.due, pause_until_) - Clock::now();
  return std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds{0}, most);
}

void NativeRefresh::refresh() {
  for (const auto& event : watch_->take()) {
    note(event);
  }
  while (!waiting_.empty()) {
    const auto now = Clock::now();
    const auto next =
        std::ranges::min_element(waiting_, {}, [](const auto& each) { return each.second.due; });
    if (next->second.due > now || pause_until_ > now) {
      return;
    }
    const auto pid = next->first;
    const bool asked = next->second.asked;
    waiting_.erase(next);
    const bool changed = tables_.scan(base::Pid{pid});
    const auto end = Clock::now();
    pause_until_ = end + std::min<Clock::duration>((end - now) * kTimesLonger, kLongestPause);
    if (changed) {
      asked_in_vain_.erase(pid);
    } else if (asked) {
      ++asked_in_vain_[pid];
    }
  }
}

}  // namespace pyinject::record
