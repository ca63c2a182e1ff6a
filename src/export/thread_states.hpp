// What a thread did over time, by the marks of its samples: markers and slices of timelines.
#pragma once

#include "report/marks.hpp"
#include "report/profile.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::exports {

enum class StateKind : std::uint8_t { kGil, kTask, kWait };
constexpr std::size_t kStateKinds = 3;

struct State {
  std::string name;         // "GIL held", "Waiting for the GIL", "Task fetch", "Wait", "Preempted"
  std::uint64_t begin = 0;  // as Sample::time
  std::uint64_t end = 0;    // of a wait; else the time of the last sample with the state
  std::uint32_t stack = 0;  // of a wait, as Sample::stack
};

// Nanoseconds between samples of one thread: their period if that is a time, else a guess.
[[nodiscard]] std::uint64_t interval_of(const report::Profile& profile);

class ThreadStates {
 public:
  explicit ThreadStates(std::uint64_t interval) : interval_{interval} {}

  // Takes the samples of a thread in order of time. IS_WAIT: SAMPLE is one of Unit::kWaits.
  void add(const report::Sample& sample, bool is_wait, const report::Marks& marks);
  // In order of time; those of a kind do not overlap.
  [[nodiscard]] const std::vector<State>& of(StateKind kind) const {
    return states_.at(static_cast<std::size_t>(kind));
  }

 private:
  void extend(StateKind kind, const std::string& name, std::uint64_t time);

  std::uint64_t interval_;
  std::array<std::vector<State>, kStateKinds> states_;
};

}  // namespace pyinject::exports
