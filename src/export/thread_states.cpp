#include "export/thread_states.hpp"

#include <algorithm>
#include <limits>

namespace pyinject::exports {

namespace {

constexpr std::uint64_t kDefaultInterval = 1'000'000;
// A state ends where the thread has no sample for so many intervals.
constexpr std::uint64_t kMostIntervals = 5;

}  // namespace

std::uint64_t interval_of(const report::Profile& profile) {
  constexpr std::uint64_t kMost = 1'000'000'000;
  for (const auto& sample : profile.samples) {
    if (profile.events[sample.event].unit == report::Unit::kNanoseconds) {
      return std::clamp(sample.period, std::uint64_t{1}, kMost);
    }
  }
  return kDefaultInterval;
}

void ThreadStates::extend(StateKind kind, const std::string& name, std::uint64_t time) {
  auto& states = states_.at(static_cast<std::size_t>(kind));
  if (states.empty() || states.back().name != name ||
      time - states.back().end > kMostIntervals * interval_) {
    states.push_back({.name = name, .begin = time, .end = time});
  }
  states.back().end = time;
}

void ThreadStates::add(const report::Sample& sample, bool is_wait, const report::Marks& marks) {
  if (is_wait) {
    auto& waits = states_.at(static_cast<std::size_t>(StateKind::kWait));
    // The next wait begins after this one, unless the recording lacks samples in between.
    const auto begin = waits.empty() ? sample.time : std::max(sample.time, waits.back().end);
    const auto longest = std::numeric_limits<std::uint64_t>::max() - sample.time;
    const auto end = std::max(begin, sample.time + std::min(sample.period, longest));
    waits.push_back({.name = marks.wait.empty() ? "Wait" : "Preempted",
                     .begin = begin,
                     .end = end,
                     .stack = sample.stack});
    return;
  }
  if (!marks.gil.empty()) {
    extend(StateKind::kGil, marks.gil == "held" ? "GIL held" : "Waiting for the GIL", sample.time);
  }
  if (!marks.task.empty()) {
    extend(StateKind::kTask, "Task " + marks.task, sample.time);
  }
}

}  // namespace pyinject::exports
