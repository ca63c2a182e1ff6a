#include "weave/off_cpu.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pyinject::weave {

void OffCpu::complete() {
  for (auto& thread : switches_) {
    std::ranges::sort(thread.second);
  }
  for (auto& thread : lives_) {
    std::ranges::sort(thread.second, {}, [](const Life& life) {
      return std::pair{life.time, life.begins};
    });
  }
}

std::optional<OffCpu::Absence> OffCpu::absence(std::uint32_t tid, std::uint64_t time) const {
  auto until = end_;
  if (const auto thread = lives_.find(tid); thread != lives_.end()) {
    const auto later = std::ranges::upper_bound(thread->second, time, {}, &Life::time);
    if (later != thread->second.begin() && !std::prev(later)->begins) {
      return std::nullopt;
    }
    if (later != thread->second.end()) {
      until = std::min(until, later->time);
    }
  }
  Absence absence;
  if (const auto thread = switches_.find(tid); thread != switches_.end()) {
    bool left = false;  // its switch-out record was seen
    for (auto at = std::ranges::lower_bound(thread->second, packed(time, kOut));
         at != thread->second.end() && *at >> kKindBits <= until; ++at) {
      const auto kind = *at & packed(0, kIn);
      if (left || (kind != kOut && kind != kPreempted)) {
        until = *at >> kKindBits;
        break;
      }
      left = true;
      absence.preempted = kind == kPreempted;
    }
  }
  absence.nanoseconds = until > time ? until - time : 0;
  return absence;
}

std::optional<OffCpu::FirstWait> OffCpu::first_wait(std::uint32_t tid, std::uint64_t begin,
                                                    std::uint64_t seen) const {
  FirstWait wait{.begin = begin};
  bool sampled = false;
  if (const auto thread = switches_.find(tid); thread != switches_.end()) {
    const auto& all = thread->second;
    auto at = std::ranges::lower_bound(all, packed(begin, kSample));
    for (; at != all.end() && *at >> kKindBits <= seen; ++at) {
      const auto kind = *at & packed(0, kIn);
      if (kind == kSample) {
        sampled = true;
      } else if (kind == kIn) {
        sampled = false;
      } else {
        wait.begin = *at >> kKindBits;
      }
    }
    if (at != all.end()) {
      wait.until = *at >> kKindBits;
    }
  }
  if (sampled) {
    return std::nullopt;
  }
  if (const auto thread = lives_.find(tid); thread != lives_.end()) {
    const auto first = std::ranges::lower_bound(thread->second, begin, {}, &Life::time);
    if (first != thread->second.end()) {
      wait.until = std::min(wait.until.value_or(first->time), first->time);
    }
  }
  return wait;
}

}  // namespace pyinject::weave
