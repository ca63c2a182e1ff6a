// The files of a recording, from perf's end to the summary.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/manager.hpp"
#include "record/completion.hpp"
#include "record/engine.hpp"
#include "record/interruption.hpp"
#include "record/observations.hpp"
#include "record/perf_run.hpp"
#include "record/roster.hpp"
#include "weave/weave.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::record {

// The arguments must outlive it. Use it when perf has ended and nothing is observed any more.
class RecordedOutput {
 public:
  // PERF: the one that recorded, and RUN its run.
  RecordedOutput(const RecordPlan& plan, const perf::Perf& perf, PerfRun& run, Engine& engine,
                 const targets::Manager& manager, const Roster& roster, Observations& observations,
                 Interruption& interruption, base::Logger& logger)
      : plan_{plan},
        reader_{perf::locate_reader(perf, plan.perf, base::Deadline::after(kPerfAnswers))},
        run_{run},
        engine_{engine},
        manager_{manager},
        roster_{roster},
        observations_{observations},
        interruption_{interruption},
        logger_{logger} {}

  // Weaves the files; SUMMARY, also to the observer. Returns the exit status if the user cancels
  // it, or if a file lacks what it was recorded for.
  [[nodiscard]] std::optional<int> complete(std::optional<RecordSummary>& summary);
  // perf died: the same with what it had written until then, if that can be read.
  void save_unfinished(std::optional<RecordSummary>& summary);

 private:
  [[nodiscard]] std::optional<int> weave_all();
  [[nodiscard]] Processed weave(const std::string& path, bool last, bool unfinished = false);
  [[nodiscard]] std::string lost_with_completion() const;
  [[nodiscard]] std::function<bool(std::uint32_t)> wanted_samples() const;
  [[nodiscard]] weave::RecordingContext context();
  [[nodiscard]] RecordSummary summarize();

  const RecordPlan& plan_;
  std::optional<perf::Perf> reader_;
  PerfRun& run_;
  Engine& engine_;
  const targets::Manager& manager_;
  const Roster& roster_;
  Observations& observations_;
  Interruption& interruption_;
  base::Logger& logger_;
  std::vector<WovenFile> woven_;
};

}  // namespace pyinject::record
