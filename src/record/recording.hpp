// The steps of one recording with one engine; record_session.hpp has the contract.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/record/record_session.hpp"
#include "pyinject/targets/manager.hpp"
#include "record/engine.hpp"
#include "record/interruption.hpp"
#include "record/observations.hpp"
#include "record/perf_run.hpp"
#include "record/perf_start.hpp"
#include "record/recorded_output.hpp"
#include "record/roster.hpp"
#include "record/target_choice.hpp"
#include "record/wait_for_end.hpp"
#include "record/workload.hpp"
#include "targets/late_arrivals.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pyinject::record {

class Recording {
 public:
  // The arguments must outlive it.
  Recording(const RecordPlan& plan, std::unique_ptr<Engine> engine, base::Logger& logger,
            targets::StopRequests& stop);

  // As record(), but returns the status alone, and throws base::Error if this tool fails. Call it
  // once.
  [[nodiscard]] int run();
  // After run(), which returned STATUS.
  [[nodiscard]] RecordResult result(int status);

 private:
  int steps();
  int check_own_recorder();
  bool leave();
  bool switch_off();
  targets::ManagerOptions manager_options();
  // The steps. If a step returns a status, the session ends with it.
  std::optional<int> after(PerfStart::Started started);
  std::optional<int> activate(std::vector<python::Target> targets);
  void follow_arrivals(std::unique_ptr<watch::ProcessWatch> watch);
  std::optional<int> enable();
  int perf_ended_early();
  int ended_before_launch();
  EndOfRecording wait();
  void on_tick();
  int finish(EndOfRecording end);
  void stop_perf();
  [[nodiscard]] int status_of(EndOfRecording end);
  int perf_failed();
  int give_up(int status);
  [[nodiscard]] RecordedOutput output();
  [[nodiscard]] std::optional<std::uint64_t> output_bytes() const;

  const RecordPlan& plan_;
  base::Logger& logger_;
  // Destroyed last to first: targets are switched off before perf is stopped.
  Interruption interruption_;
  std::unique_ptr<Engine> engine_;
  perf::Perf located_;
  PerfRun perf_;
  Workload workload_;
  Roster roster_;
  Observations observations_;
  std::optional<RecordSummary> summary_;
  std::unique_ptr<targets::Manager> manager_;
  // Null: no late arrivals, only the initial processes.
  std::unique_ptr<targets::LateArrivals> arrivals_;
};

}  // namespace pyinject::record
