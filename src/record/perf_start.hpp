// Starts perf with its events disabled, and attaches the engine to them.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/manager.hpp"
#include "record/engine.hpp"
#include "record/interruption.hpp"
#include "record/perf_run.hpp"
#include "record/roster.hpp"

#include <set>
#include <string>
#include <vector>

namespace pyinject::record {

// The arguments must outlive it.
class PerfStart {
 public:
  // OPTIONS: those that this tool adds for perf. ENGINE has chosen the call graph.
  PerfStart(const RecordPlan& plan, const std::vector<std::string>& options, Engine& engine,
            const targets::Manager& manager, Roster& roster, PerfRun& perf,
            Interruption& interruption, base::Logger& logger)
      : plan_{plan},
        options_{options},
        engine_{engine},
        manager_{manager},
        roster_{roster},
        perf_{perf},
        interruption_{interruption},
        logger_{logger} {}

  enum class Started {
    kYes,
    kInterrupted,  // by a signal
    kFailed,       // logged, unless the engine says why (why_replaceable())
    kPerfFailed,   // perf exited before its events were open
    kPerfEnded,    // after that
  };
  // perf runs with its events disabled when this returns kYes, and as it was left otherwise.
  [[nodiscard]] Started start(const perf::Perf& perf);
  // From now on perf records memory that becomes executable, if it did not from the start.
  void enable_side_events();

 private:
  [[nodiscard]] Started start_once(const perf::Perf& perf);
  [[nodiscard]] Started run(const perf::Perf& perf);
  [[nodiscard]] bool may_record_all() const;
  [[nodiscard]] bool misses_newborn() const;
  [[nodiscard]] std::set<base::Tid> tasks_of_targets();

  const RecordPlan& plan_;
  const std::vector<std::string>& options_;
  Engine& engine_;
  EventProgram* const program_ = engine_.program();
  const targets::Manager& manager_;
  Roster& roster_;
  PerfRun& perf_;
  Interruption& interruption_;
  base::Logger& logger_;
  bool record_all_ = false;    // perf does, and the engine drops unwanted samples
  bool drops_others_ = false;  // the engine does, permanently: it must learn of all targets
};

}  // namespace pyinject::record
