#include "record/bpf_engine.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "perfdata/input.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "record/recording_clock.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>
#include <variant>

#include <fcntl.h>

namespace pyinject::record {

namespace {

std::vector<std::uint64_t> tracepoints_without_stacks(const weave::WeaveFlags& flags) {
  std::vector<std::uint64_t> all;
  for (const auto& call : flags.timed_calls) {
    all.push_back(call.exit);
  }
  for (const auto& call : flags.memory_calls) {
    all.insert(all.end(), {call.enter, call.exit});
  }
  return all;
}

}  // namespace

BpfEngine::BpfEngine(const RecordPlan& plan, std::unique_ptr<StackSampler> sampler,
                     base::Logger& logger, RecordObserver& observer)
    : clock_{recording_clock(*plan.perf_options)},
      without_stacks_{tracepoints_without_stacks(plan.flags)},
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

// The ids of the events in FILE, which perf has begun to write, that need no stacks. Without them
// the program also runs at the ends of calls, which only costs time.
std::vector<std::uint64_t> BpfEngine::ends_of_calls(const std::string& file) const {
  std::vector<std::uint64_t> ids;
  if (without_stacks_.empty()) {
    return ids;
  }
  constexpr int kReads = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  base::UniqueFd opened{::open((file + "/data").c_str(), kReads)};  // of a directory (--threads)
  if (!opened.valid()) {
    opened.reset(::open(file.c_str(), kReads));
  }
  if (!opened.valid()) {
    return ids;
  }
  const auto events = perfdata::events_of_running(opened, file);
  if (const auto* const all = std::get_if<std::vector<perfdata::Event>>(&events)) {
    for (const auto& event : *all) {
      const bool is_end = std::ranges::any_of(without_stacks_, [&event](std::uint64_t tracepoint) {
        return event.samples_each_hit_of(tracepoint) && !event.samples(PERF_SAMPLE_CALLCHAIN);
      });
      if (is_end) {
        ids.insert(ids.end(), event.ids.begin(), event.ids.end());
      }
    }
  }
  std::ranges::sort(ids);
  return ids;
}

Engine::Attached BpfEngine::attach(PerfRun& perf, const targets::Manager& manager) {
  switch (sampler_->attach(perf.process(), ends_of_calls(perf.output().path))) {
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
