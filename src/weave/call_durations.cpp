#include "weave/call_durations.hpp"

#include <algorithm>

namespace pyinject::weave {

void CallDurations::runs(std::uint32_t tid, std::uint64_t time) {
  auto& last = last_seen_[tid];
  last = std::max(last, time);
}

std::optional<std::uint64_t> CallDurations::packed(std::uint64_t time, std::size_t call,
                                                   unsigned is_end) const {
  const auto since = time - base_.value_or(time);
  if (time < base_.value_or(time) || since >> (64 - kCodeBits) != 0 || call >= kMostCalls) {
    return std::nullopt;
  }
  return since << kCodeBits | call << 1U | is_end;
}

void CallDurations::add(std::uint32_t tid, std::uint64_t time, std::size_t call, unsigned is_end) {
  constexpr std::uint64_t kAYear = std::uint64_t{1} << 55U;
  if (!base_) {  // the first record is not the earliest
    base_ = time - std::min(time, kAYear);
  }
  const auto moment = packed(time, call, is_end);
  if (moment && count_ < kMostMoments) {
    ++count_;
    moments_[tid].push_back(*moment);
  }
}

void CallDurations::complete() {
  for (auto& thread : moments_) {
    std::ranges::sort(thread.second);
  }
  for (auto* const times : {&losses_, &exits_}) {
    for (auto& thread : *times) {
      std::ranges::sort(thread.second);
    }
  }
}

bool CallDurations::is_lossy(std::uint32_t tid, std::uint64_t from, std::uint64_t to) const {
  const auto thread = losses_.find(tid);
  if (thread == losses_.end()) {
    return false;
  }
  const auto loss = std::ranges::upper_bound(thread->second, from);
  return loss != thread->second.end() && *loss <= to;
}

std::optional<CallDurations::Duration> CallDurations::of(std::uint32_t tid, std::uint64_t time,
                                                         std::size_t call) const {
  const auto entered = packed(time, call, 0);
  const auto thread = moments_.find(tid);
  if (!entered || thread == moments_.end() ||
      !std::ranges::binary_search(thread->second, *entered)) {
    return std::nullopt;
  }
  auto until = end_;
  if (const auto exits = exits_.find(tid); exits != exits_.end()) {
    const auto exit = std::ranges::lower_bound(exits->second, time);
    until = exit == exits->second.end() ? until : std::min(until, *exit);
  }
  const auto next = std::ranges::upper_bound(thread->second, *entered);
  if (next != thread->second.end() && *base_ + (*next >> kCodeBits) <= until) {
    const auto left = *base_ + (*next >> kCodeBits);
    const bool is_its_end = (*next & ((1U << kCodeBits) - 1)) == (call << 1U | 1U);
    return is_its_end && !is_lossy(tid, time, left)
               ? std::optional{Duration{.nanoseconds = left - time}}
               : std::nullopt;
  }
  const auto seen = last_seen_.find(tid);
  const bool ran = seen != last_seen_.end() && seen->second > time && seen->second <= until;
  if (ran || is_lossy(tid, time, until)) {
    return std::nullopt;
  }
  return Duration{.nanoseconds = until > time ? until - time : 0, .lasts = until == end_};
}

}  // namespace pyinject::weave
