// Injects into the targets of one kind again and again, and counts the results.
#pragma once

#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "stress/kinds.hpp"
#include "stress/leftovers.hpp"
#include "stress/stressed_target.hpp"
#include "stress/tally.hpp"
#include "support/interpreters.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace pyinject::test {

class Torture {
 public:
  Torture(const Kind& kind, const Interpreter& interpreter)
      : kind_{kind}, interpreter_{interpreter} {}

  // One life of a target: activates, then switches off and on again, INJECTIONS in total; then
  // makes RECORDINGS of half a second with the tool.
  void live(int injections, int recordings);
  // Runs the same program without the tool, for the average duration of the lives so far.
  void live_without_tool();

  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] const Tally& control() const { return control_; }

 private:
  enum class Outcome { kDone, kRefused, kError };

  void work(StressedTarget& target, int injections, int recordings);
  [[nodiscard]] bool inject(StressedTarget& target, bool& on);
  [[nodiscard]] std::optional<python::Refusal> try_inject(base::Pid pid, bool on);
  [[nodiscard]] Outcome book(const std::optional<python::Refusal>& refusal, bool on);
  [[nodiscard]] std::optional<python::TrampolineState> state_of(base::Pid pid);
  void switch_off(StressedTarget& target, bool& on);
  void record(StressedTarget& target);
  void look_for_children(base::Pid pid);
  void look_at_state(StressedTarget& target);
  [[nodiscard]] bool works_on(StressedTarget& target);
  // Tells it to stop, reads its verdict and checks what is left.
  void finish(StressedTarget& target, const std::optional<Snapshot>& before, Tally& tally,
              bool may_be_on);
  void see_end(StressedTarget& target, Tally& tally) const;
  [[nodiscard]] bool can_be_looked_at() const;

  const Kind& kind_;
  const Interpreter& interpreter_;
  Tally tally_;
  Tally control_;
  std::chrono::nanoseconds worked_{};
  std::unique_ptr<python::Detector> detector_ = python::make_detector();
  std::unique_ptr<python::Injector> injector_ = python::make_injector();
};

}  // namespace pyinject::test
