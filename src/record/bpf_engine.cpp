#include "record/bpf_engine.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "record/recording_clock.hpp"

#include <ctime>
#include <optional>
#include <utility>
#include <variant>

namespace pyinject::record {

BpfEngine::BpfEngine(const RecordPlan& plan, std::unique_ptr<StackSampler> sampler,
                     base::Logger& logger, RecordObserver& observer)
    : clock_{recording_clock(*plan.perf_options)},
      sampler_{std::move(sampler)},
      targets_{*sampler_},
      detector_{python::make_detector(python::Purpose::kObserve)},
      logger_{logger},
      observer_{observer} {
  sampler_->keep_time_by(clock_);
}

CallGraphChoice BpfEngine::choose_call_graph(const std::vector<python::Target>& /*targets*/,
                                             const CallGraphWishes& wishes,
                                             const base::Cancellation& interrupted) {
  sampler_->add_native_of(wishes, interrupted);
  return choose_for_sampled(wishes);
}

bool BpfEngine::activated(const targets::ActiveTarget& /*active*/) {
  base::reached(base::Step::kActivated);
  return true;
}

Engine::Attached BpfEngine::attach(PerfRun& perf, const targets::Manager& manager) {
  switch (sampler_->attach(perf)) {
    case StackSampler::Attached::kYes:
      break;
    case StackSampler::Attached::kNone:
      return Attached::kFailed;
    case StackSampler::Attached::kEnded:
      return Attached::kPerfEnded;
  }
  observer_.release(manager.active());
  sampler_->start();
  return Attached::kYes;
}

std::string BpfEngine::why_replaceable() const {
  const auto& why = sampler_->why_not_attached();
  return why.empty() ? std::string{}
                     : "the BPF program cannot be attached to perf's events: " + why;
}

void BpfEngine::add_to(weave::RecordingContext& context) {
  context.stacks = &sampler_->stacks();
  context.native = &sampler_->stacks();
  context.interpreters = sampler_->interpreters();
  context.dropped = sampler_->dropped();
}

void BpfEngine::summarize(RecordSummary& summary) {
  if (summary.woven.empty()) {  // no file got the stacks
    return;
  }
  auto stats = sampler_->stats();
  for (const auto& file : summary.woven) {
    stats.matched += file.summary.exiting;
    stats.unmatched += file.summary.without_record;
    stats.python_only += file.summary.python_only;
    stats.python_only_cut += file.summary.python_only_cut;
  }
  if (stats.by_clock != 0 && clock_ != std::optional<clockid_t>{CLOCK_MONOTONIC}) {
    logger_.warning(
        "before Linux 6.3, --engine bpf needs -k mono to match samples with their Python stacks: "
        "omit -k");
  }
  if (stats.traced != 0 && clock_ != std::optional<clockid_t>{CLOCK_MONOTONIC}) {
    logger_.warning(
        "samples of tracepoints and probes need -k mono to be matched with their Python stacks: "
        "omit -k");
  }
  summary.sampler = stats;
}

}  // namespace pyinject::record
