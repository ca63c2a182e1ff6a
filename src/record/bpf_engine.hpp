// A program in the kernel reads the frames of targets at each sample; nothing is done to a target.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/options.hpp"
#include "record/deferred_observer.hpp"
#include "record/engine.hpp"
#include "record/sampled_targets.hpp"
#include "record/stack_sampler.hpp"

#include <ctime>
#include <memory>
#include <optional>
#include <string>

namespace pyinject::session {

class BpfEngine : public Engine {
 public:
  BpfEngine(const RecordOptions& options, std::unique_ptr<StackSampler> sampler,
            base::Logger& logger, RecordObserver& observer);

  [[nodiscard]] python::Detector& detector() override { return *detector_; }
  [[nodiscard]] TargetHandler& target_handler() override { return targets_; }
  [[nodiscard]] RecordObserver& observer() override { return observer_; }
  [[nodiscard]] bool takes_launched_late() const override { return true; }
  [[nodiscard]] CallGraphChoice choose_call_graph(const std::vector<python::Target>& targets,
                                                  const CallGraphWishes& wishes,
                                                  const base::Cancellation& interrupted) override;
  // Then it knows all children that are recorded with them, too.
  [[nodiscard]] bool takes_targets_before_perf() const override { return true; }
  [[nodiscard]] bool activated(const ActiveTarget& active) override;
  [[nodiscard]] bool misses_newborn_threads() const override { return true; }
  // Of events that take no program nothing is dropped in the kernel.
  [[nodiscard]] bool can_narrow() const override { return sampler_->takes_all_events(); }
  void narrow_to(std::span<const base::Pid> pids) override { sampler_->record_only(pids); }
  [[nodiscard]] Attached attach(PerfRun& perf, const Manager& manager) override;
  void events_disabled() override { sampler_->stop(); }
  void add_to(weave::RecordingContext& context) override;
  [[nodiscard]] std::string lost_if_incomplete() const override { return "Python stacks"; }
  void summarize(RecordSummary& summary) override;

  [[nodiscard]] std::string why_replaceable() const override;
  void release_events() override { observer_.release({}); }

 private:
  const std::optional<clockid_t> clock_;  // of the recording
  std::unique_ptr<StackSampler> sampler_;
  SampledTargets targets_;
  std::unique_ptr<python::Detector> detector_;
  base::Logger& logger_;
  DeferredObserver observer_;
};

}  // namespace pyinject::session
