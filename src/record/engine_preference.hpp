// Whether BPF suits the targets of a recording better than the trampoline, if the user has chosen
// neither.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/record/plan.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace pyinject::record {

// What the trampoline would do to a target, or leave out of its stacks.
struct TrampolineFit {
  base::Pid pid;
  python::Version version;
  std::string obstacle = {};       // why it is refused, or a warning; empty: neither
  bool main_runs_python = true;    // its main thread, which has to switch the trampoline on
  std::size_t python_threads = 0;  // that run Python functions
  bool greenlets = false;          // it has loaded greenlet
  std::size_t forked = 0;          // its running children that have not exec'ed
  std::size_t executed = 0;        // those that have exec'ed Python, if they are targets, too
};

// One line about the first of TARGETS that BPF suits better; empty: there is none. Pure.
[[nodiscard]] std::string why_bpf(std::span<const TrampolineFit> targets);

// The same for the targets of PLAN now, or the command that it launches; empty also for events
// that only the trampoline can serve. DETECTOR: of the trampoline. Only reads. Returns "" early if
// CANCELLATION is stopped.
[[nodiscard]] std::string why_bpf(const RecordPlan& plan, python::Detector& detector,
                                  const base::Cancellation& cancellation);

}  // namespace pyinject::record
