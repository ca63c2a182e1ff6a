#include "export/thread_states.hpp"

#include <algorithm>
#include <limits>

namespace pyinject::exports {

namespace {

constexpr std::uint64_t kDefaultInterval = 1'000'000;
// A state ends where the thread has no sample for so many intervals.
constexpr std::uint64_t kMostIntervals = 5;

std::uint64_t end_of(const report::Sample& sample, std::uint64_t length) {
  return sample.time + std::min(length, std::numeric_limits<std::uint64_t>::max() - sample.time);
}

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

// A collection extends over consecutive samples that show it. The last one stands for its period,
// at most until the thread's next sample; a period that is not a time has no length.
void ThreadStates::extend_collection(const report::Sample& sample, report::Unit unit,
                                     bool collects) {
  auto& states = states_.at(static_cast<std::size_t>(StateKind::kCollection));
  if (collects_) {
    states.back().end = std::min(states.back().end, sample.time);
  }
  const bool goes_on = collects_ && sample.time - states.back().end <= kMostIntervals * interval_;
  collects_ = collects;
  if (!collects) {
    return;
  }
  if (!goes_on) {
    states.push_back({.name = "GC", .begin = sample.time, .end = sample.time});
  }
  auto& state = states.back();
  ++state.samples;
  const auto length = unit == report::Unit::kWaits         ? sample.period
                      : unit == report::Unit::kNanoseconds ? std::min(sample.period, interval_)
                                                           : 0;
  state.end = end_of(sample, length);
}

void ThreadStates::add(const report::Sample& sample, report::Unit unit, const report::Marks& marks,
                       bool collects) {
  extend_collection(sample, unit, collects);
  if (unit == report::Unit::kWaits) {
    auto& waits = states_.at(static_cast<std::size_t>(StateKind::kWait));
    // The next wait begins after this one, unless the recording lacks samples in between.
    const auto begin = waits.empty() ? sample.time : std::max(sample.time, waits.back().end);
    const auto end = std::max(begin, end_of(sample, sample.period));
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
  } else if (marks.greenlet) {
    extend(StateKind::kTask, marks.greenlet->text(), sample.time);
  }
}

}  // namespace pyinject::exports
