// The BPF engine: a BPF program reads the frames of targets at each sample; targets are not
// modified.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/record/plan.hpp"
#include "record/deferred_observer.hpp"
#include "record/engine.hpp"
#include "record/sampled_targets.hpp"
#include "record/stack_sampler.hpp"

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::record {

class BpfEngine : public Engine {
 public:
  BpfEngine(const RecordPlan& plan, std::unique_ptr<StackSampler> sampler, base::Logger& logger,
            RecordObserver& observer);

  [[nodiscard]] python::Detector& detector() override { return *detector_; }
  [[nodiscard]] targets::TargetHandler& target_handler() override { return targets_; }
  [[nodiscard]] RecordObserver& observer() override { return observer_; }
  [[nodiscard]] bool takes_launched_late() const override { return true; }
  [[nodiscard]] CallGraphChoice choose_call_graph(const std::vector<python::Target>& targets,
                                                  const CallGraphWishes& wishes,
                                                  const base::Cancellation& interrupted) override;
  // The program then also knows all children that are recorded with the targets.
  [[nodiscard]] bool takes_targets_before_perf() const override { return true; }
  [[nodiscard]] bool activated(const targets::ActiveTarget& active) override;
  [[nodiscard]] EventProgram* program() override { return sampler_.get(); }
  [[nodiscard]] Attached attach(PerfRun& perf, const targets::Manager& manager) override;
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

}  // namespace pyinject::record
