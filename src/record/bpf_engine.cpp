#include "record/bpf_engine.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "record/extension_modules.hpp"
#include "record/recording_clock.hpp"

#include <ctime>
#include <optional>
#include <utility>

namespace pyinject::session {

BpfEngine::BpfEngine(const RecordOptions& options, std::unique_ptr<StackSampler> sampler,
                     base::Logger& logger, RecordObserver& observer)
    : clock_{recording_clock(perf::parse_options(options.perf_options))},
      sampler_{std::move(sampler)},
      targets_{*sampler_},
      detector_{python::make_detector(python::Purpose::kObserve)},
      logger_{logger},
      observer_{observer} {
  sampler_->keep_time_by(clock_);
}

CallGraphChoice BpfEngine::choose_call_graph(const std::vector<python::Target>& targets,
                                             const CallGraphWishes& wishes,
                                             const base::Cancellation& interrupted) {
  ExtensionModules extensions;
  std::vector<CallGraphFacts> facts;
  for (const auto& target : targets) {
    if (interrupted.stopped()) {
      return {};
    }
    CallGraphFacts one{
        .pid = target.id.pid, .version = target.version, .frame_pointers = target.frame_pointers};
    if (target.frame_pointers && !wishes.chosen) {
      one.extension_without = extensions.without_frame_pointers(target.id.pid).value_or("");
    }
    facts.push_back(one);
  }
  return choose_for_sampled(facts, wishes);
}

bool BpfEngine::activated(const ActiveTarget& /*active*/) {
  base::reached(base::Step::kActivated);
  return true;
}

Engine::Attached BpfEngine::attach(PerfRun& perf, const Manager& manager) {
  switch (sampler_->attach(perf.process())) {
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
  context.interpreters = sampler_->interpreters();
  context.dropped = sampler_->dropped();
}

void BpfEngine::summarize(RecordSummary& summary) {
  if (summary.woven.empty()) {  // no file has the stacks
    return;
  }
  auto stats = sampler_->stats();
  for (const auto& file : summary.woven) {
    stats.unmatched += file.summary.without_record;
    stats.python_only += file.summary.python_only;
    stats.python_only_cut += file.summary.python_only_cut;
  }
  if (stats.by_clock != 0 && clock_ != std::optional<clockid_t>{CLOCK_MONOTONIC}) {
    logger_.warning(
        "this kernel does not report a sample's time to BPF, and -k is not mono: samples cannot "
        "be matched with their Python stacks");
  }
  summary.sampler = stats;
}

}  // namespace pyinject::session
