// perf is started, with its events disabled, and the second engine is attached to them.
#include "base/format.hpp"
#include "pyinject/base/fault.hpp"
#include "pyinject/perf/record_options.hpp"
#include "pyinject/procfs/stat.hpp"
#include "pyinject/procfs/tasks.hpp"
#include "pyinject/session/target_selection.hpp"
#include "session/recorder.hpp"
#include "session/recording_end.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace pyinject::session {

using base::Deadline;

// perf records those that it was named, and what they fork once it has opened its events: who was
// born in between is missing. Threads and children born since perf has looked at them and until the
// program was attached to its events inherited events without it. Then perf starts anew. Where they
// are begun all the time perf records the whole system, and what is not wanted is dropped in the
// kernel.
std::optional<int> Recorder::start_perf_for_all(const perf::Perf& perf) {
  constexpr int kMostStarts = 5;  // a program that forks all the time is recorded nevertheless
  for (int start = 1;; ++start) {
    const auto before = tasks_of_targets();
    if (drops_others_) {
      sampler_->record_only(pids_);
    }
    if (const auto status = start_perf(perf)) {
      return status;
    }
    if (const auto status = attach_sampler()) {
      return status;
    }
    const bool missed = !record_all_ && !std::ranges::includes(before, tasks_of_targets());
    if (start == kMostStarts) {
      if (missed) {
        logger_.warning(
            "threads or processes are begun all the time: some of them have no Python functions in "
            "their samples");
      }
      return std::nullopt;
    }
    const bool newborn = options_.children && find_newborn();
    const bool too_many = record_all_ && !may_record_all();
    if (!newborn && !missed && !too_many) {
      return std::nullopt;
    }
    record_all_ = may_record_all() && (record_all_ || (missed && start > 1));
    drops_others_ = drops_others_ || record_all_;
    logger_.debug("perf is started anew{}: {}", record_all_ ? ", for the whole system" : "",
                  too_many ? "of some events it would keep the samples of other processes"
                           : "threads or processes were born while it started");
    discard();
    if (signal_ != 0) {
      return 128 + signal_;
    }
  }
}

// Of what perf would record of those that are born meanwhile: threads of the targets and their
// children, and with --children all that descends from them.
std::set<base::Tid> Recorder::tasks_of_targets() {
  std::set<base::Tid> tasks;
  if (sampler_ == nullptr || options_.all || perf::leaves_out_children(options_.perf_options)) {
    return tasks;
  }
  for (const auto pid : options_.children ? families() : children_of(pids_)) {
    tasks.insert(base::Tid{pid.value()});
  }
  for (const auto pid : pids_) {
    const auto tids = procfs::list_tasks(pid);
    tasks.insert(tids.begin(), tids.end());
  }
  return tasks;
}

// What perf may do is what this tool may, when that is root's. Of events that take no program
// nothing is dropped in the kernel.
bool Recorder::may_record_all() const {
  return sampler_ != nullptr && sampler_->takes_all_events() && !options_.all && !options_.launch &&
         ::geteuid() == 0;
}

void Recorder::tell_attached() {
  if (std::exchange(sampler_attached_, true)) {  // perf was started anew
    return;
  }
  tell_held();
  for (const auto& active : manager_->active()) {
    observer_.activated(active);
  }
}

std::optional<int> Recorder::attach_sampler() {
  if (sampler_ == nullptr) {
    return std::nullopt;
  }
  switch (sampler_->attach(*perf_)) {
    case StackSampler::Attached::kYes:
      tell_attached();
      break;
    case StackSampler::Attached::kNone:
      return give_up(kFailure);
    case StackSampler::Attached::kEnded:
      return perf_ended_early();
  }
  sampler_->start();
  return std::nullopt;
}

std::optional<int> Recorder::start_perf(const perf::Perf& perf) {
  rollback_ = std::make_unique<perf::OutputRollback>(output_);
  perf::RecordCommand command{.perf = perf.path,
                              .own = own_options_,
                              .options = options_.perf_options,
                              .pids = record_all_ ? std::vector<base::Pid>{} : pids_,
                              .cgroup = options_.scope.cgroup};
  // Older perfs beside one that asks for them, as perf 7 does, die of it (kernel-notes.md). The
  // option is of 5.12.
  if (command.pids.empty() && perf.major >= 6) {
    command.own.emplace_back("--no-buildid-mmap");
  }
  perf_ = std::make_unique<perf::PerfProcess>(command);
  switch (perf_->request("ping", Deadline::after(kPerfSetsUp), signals_.fd())) {
    case perf::Answer::kAcknowledged:
      base::reached(base::Step::kPerfRuns);
      return std::nullopt;
    case perf::Answer::kEnded:
      // A thread that perf has seen was gone when its event was to be opened (ESRCH).
      if (!record_all_ && may_record_all() &&
          perf_->stderr_text().find("No such process") != std::string::npos) {
        record_all_ = true;
        drops_others_ = true;
        sampler_->record_only(pids_);
        rollback_->undo();  // else the next one would take an earlier file's place
        return start_perf(perf);
      }
      return perf_failed();
    case perf::Answer::kInterrupted:
      (void)take_signal();
      return give_up(128 + signal_);
    case perf::Answer::kDeadline:
      break;
  }
  logger_.error("perf record did not become ready within {} s: see its messages with -v",
                kPerfSetsUp.count());
  return give_up(kFailure);
}

// Of the whole system they are enabled from the start, and to enable all events for a moment may
// keep perf too busy to hear that they are to be disabled. Its failure is found out by "enable"; a
// signal is taken by the next step. Samples may come of it, which the file does not keep; what is
// read by their program has to be known by then.
void Recorder::enable_side_events() {
  if (!options_.all && !record_all_) {
    (void)perf_->enable_side_events(Deadline::after(kPerfAnswers), signals_.fd());
  }
  base::reached(base::Step::kSideEventsEnabled);
}

}  // namespace pyinject::session
