#include "weave/comm_history.hpp"

#include <algorithm>
#include <iterator>

namespace pyinject::weave {

void CommHistory::add(std::uint32_t pid, std::uint32_t tid, std::uint64_t seen,
                      const std::string& name) {
  constexpr auto kEnd = ~std::uint64_t{0};
  const auto last = seen == 0 ? kEnd : seen;
  auto known = threads_.find(tid);
  if (known != threads_.end() && !known->second.entries.empty()) {
    auto& latest = known->second.entries.back();
    if (latest.pid == pid && latest.name == name) {
      latest.last = std::max(latest.last, last);
      return;
    }
  }
  if (entries_ == kMostEntries) {
    return;
  }
  ++entries_;
  threads_[tid].entries.push_back({.pid = pid, .first = seen, .last = last, .name = name});
}

void CommHistory::starts(std::uint32_t tid, std::uint64_t time) {
  constexpr std::size_t kMostStarts = 1024;  // a forged file can have any number
  if (const auto thread = threads_.find(tid);
      thread != threads_.end() && thread->second.starts.size() < kMostStarts) {
    auto& starts = thread->second.starts;
    starts.insert(std::ranges::upper_bound(starts, time), time);
  }
}

void CommHistory::forget_starts() {
  for (auto& [tid, thread] : threads_) {
    thread.starts.clear();
  }
}

const std::string* CommHistory::find(std::uint32_t pid, std::uint32_t tid,
                                     std::uint64_t begin) const {
  const auto thread = threads_.find(tid);
  if (thread == threads_.end()) {
    return nullptr;
  }
  const auto& starts = thread->second.starts;
  const auto next = std::ranges::upper_bound(starts, begin);
  const std::string* found = nullptr;
  for (const auto& entry : thread->second.entries) {
    const bool overlaps = entry.last >= begin && (next == starts.end() || entry.first < *next);
    if (entry.pid == pid && overlaps) {
      found = &entry.name;
    }
  }
  return found;
}

std::uint64_t CommHistory::begin_of(std::uint32_t tid, std::uint64_t time) const {
  const auto thread = threads_.find(tid);
  if (thread == threads_.end()) {
    return 0;
  }
  const auto& starts = thread->second.starts;
  const auto next = std::ranges::upper_bound(starts, time);
  return next == starts.begin() ? 0 : *std::prev(next);
}

}  // namespace pyinject::weave
