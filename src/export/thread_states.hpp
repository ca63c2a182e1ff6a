// What a thread did over time, by its samples: markers and slices of timelines.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/marks.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::exports {

enum class StateKind : std::uint8_t { kGil, kTask, kCollection, kWait };
constexpr std::size_t kStateKinds = 4;

struct State {
  // "GIL held", "Waiting for the GIL", "Task fetch", "GC", "Wait", "Preempted"
  std::string name;
  std::uint64_t begin = 0;  // as Sample::time
  // Of a wait. Of a collection: of what its last sample stands for. Else the time of the last
  // sample with the state.
  std::uint64_t end = 0;
  std::uint32_t stack = 0;    // of a wait, as Sample::stack
  std::uint64_t samples = 0;  // of a collection
};

// Nanoseconds between samples of one thread: their period if that is a time, else a guess.
[[nodiscard]] std::uint64_t interval_of(const report::Profile& profile);

class ThreadStates {
 public:
  explicit ThreadStates(std::uint64_t interval) : interval_{interval} {}

  // Takes the samples of a thread in order of time. UNIT: of the event of SAMPLE. COLLECTS: its
  // stack has the frame of the garbage collector.
  void add(const report::Sample& sample, report::Unit unit, const report::Marks& marks,
           bool collects);
  // In order of time; those of a kind do not overlap.
  [[nodiscard]] const std::vector<State>& of(StateKind kind) const {
    return states_.at(static_cast<std::size_t>(kind));
  }

 private:
  void extend(StateKind kind, const std::string& name, std::uint64_t time);
  void extend_collection(const report::Sample& sample, report::Unit unit, bool collects);

  std::uint64_t interval_;
  bool collects_ = false;  // the thread's last sample
  std::array<std::vector<State>, kStateKinds> states_;
};

}  // namespace pyinject::exports
