#include "weave/off_cpu.hpp"

#include <algorithm>
#include <optional>

namespace pyinject::weave {

namespace {

// The first one of TID that is not before TIME.
template <typename Times>
std::optional<std::uint64_t> first_since(const Times& times, std::uint32_t tid,
                                         std::uint64_t time) {
  const auto thread = times.find(tid);
  if (thread == times.end()) {
    return std::nullopt;
  }
  const auto found = std::ranges::lower_bound(thread->second, time);
  return found == thread->second.end() ? std::nullopt : std::optional{*found};
}

}  // namespace

void OffCpu::complete() {
  for (auto* const times : {&ends_, &preempted_}) {
    for (auto& thread : *times) {
      std::ranges::sort(thread.second);
    }
  }
}

OffCpu::Absence OffCpu::absence(std::uint32_t tid, std::uint64_t time) const {
  const auto until = first_since(ends_, tid, time).value_or(std::max(end_, time));
  const auto preempted = first_since(preempted_, tid, time);
  return {.nanoseconds = until - time, .preempted = preempted && *preempted <= until};
}

}  // namespace pyinject::weave
