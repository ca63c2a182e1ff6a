#include "record/observations.hpp"

#include "base/clock.hpp"
#include "base/format.hpp"
#include "record/recording_clock.hpp"
#include "targets/cannot_run.hpp"

namespace pyinject::record {

Observations::Observations(const RecordPlan& plan, base::Logger& logger)
    : plan_{plan},
      logger_{logger},
      maps_{plan.maps, logger},
      thread_names_{logger, recording_clock(*plan.perf_options)} {}

void Observations::switched_off_by_program(base::Pid pid) {
  gaps_.add(perfdata::Gap::kSwitchedOff, pid);
}

void Observations::ended(base::Pid pid, const targets::ActiveTarget* active) {
  maps_.collect(maps_of_children_.take(pid), pid);
  if (active != nullptr) {
    maps_.collect(*active);
  }
}

void Observations::begins() {
  if (const auto clock = recording_clock(*plan_.perf_options)) {
    begun_at_ = base::now_by(*clock);
  }
}

// The threads of a launched command cannot wait: it has not started yet.
void Observations::look(const targets::ActiveTargets& active, const Roster& roster) {
  if (plan_.flags.off_cpu && !plan_.launches()) {
    std::vector<const python::Target*> targets;
    for (const auto& one : active) {
      targets.push_back(&one->target);
    }
    waits_.emplace(logger_);
    waits_->look(targets, plan_.whole_system() ? std::vector<base::Pid>{} : roster.for_perf(),
                 recording_clock(*plan_.perf_options));
  }
  thread_names_.look(active);
}

void Observations::ends(const targets::ActiveTargets& active) {
  if (waits_) {
    waits_->look_again();
  }
  if (!plan_.whole_system()) {  // on a whole machine, some are always stopped
    for (const auto& one : active) {
      targets::add_if_it_cannot_run(one->target.id.pid, gaps_);
    }
  }
}

void Observations::disabled(bool acknowledged) {
  const auto clock = recording_clock(*plan_.perf_options);
  if (clock && acknowledged) {
    ended_at_ = base::now_by(*clock);
  }
  elapsed_ = Clock::now() - enabled_at_;
}

void Observations::collect_maps(const targets::ActiveTargets& active) {
  for (const auto& one : active) {
    maps_.collect(*one);
  }
  for (const auto pid : maps_of_children_.pids()) {
    maps_.collect(maps_of_children_.take(pid), pid);
  }
}

std::chrono::nanoseconds Observations::elapsed() const {
  return elapsed_.value_or(Clock::now() - enabled_at_);
}

perfdata::TargetGaps Observations::gaps(bool last) const {
  auto gaps = gaps_;
  if (!last) {
    gaps.of(perfdata::Gap::kFrozen) = gaps.of(perfdata::Gap::kStopped) = {};
  }
  return gaps;
}

void Observations::add_to(weave::RecordingContext& context) {
  context.waits = waits_ ? waits_->waits() : nullptr;
  context.comms = thread_names_.history().empty() ? nullptr : &thread_names_.history();
}

void Observations::warn() const {
  for (const auto& gap : perfdata::sentences(gaps_)) {
    logger_.warning("{}", gap);
  }
  if (waits_) {
    waits_->warn();
  }
}

}  // namespace pyinject::record
