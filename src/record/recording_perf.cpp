// perf is started, with its events disabled, and the engine is attached to them.
#include "base/fault.hpp"
#include "base/format.hpp"
#include "perf/record_options.hpp"
#include "record/recording.hpp"

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
std::optional<int> Recording::start_perf_for_all(const perf::Perf& perf) {
  // A program that forks all the time is recorded nevertheless, and soon.
  constexpr int kMostStarts = 5;
  const auto until = Deadline::after(std::chrono::seconds{2});
  for (int start = 1;; ++start) {
    const auto before = tasks_of_targets();
    if (drops_others_) {
      engine_->narrow_to(roster_.for_perf());
    }
    if (const auto status = start_perf(perf)) {
      return status;
    }
    if (const auto status = attach_engine()) {
      return status;
    }
    const bool missed = !record_all_ && !std::ranges::includes(before, tasks_of_targets());
    if (start == kMostStarts || (!engine_->misses_newborn_threads() && until.expired())) {
      if (missed) {
        logger_.warning(
            "new threads or processes start all the time: some of them have no Python functions in "
            "their samples");
      }
      return std::nullopt;
    }
    bool newborn = options_.children && roster_.add_newborn();
    if (newborn && record_all_) {  // perf records them: the program is not to drop them
      engine_->narrow_to(roster_.for_perf());
      newborn = false;
    }
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

std::set<base::Tid> Recording::tasks_of_targets() {
  return engine_->misses_newborn_threads() ? roster_.tasks() : std::set<base::Tid>{};
}

// What perf may do is what this tool may, when that is root's.
bool Recording::may_record_all() const {
  return engine_->can_narrow() && !options_.all && !options_.launch && ::geteuid() == 0;
}

std::optional<int> Recording::attach_engine() {
  switch (engine_->attach(perf_, *manager_)) {
    case Engine::Attached::kYes:
      return std::nullopt;
    case Engine::Attached::kPerfEnded:
      return perf_ended_early();
    case Engine::Attached::kFailed:
      break;
  }
  return give_up(kFailure);
}

std::optional<int> Recording::start_perf(const perf::Perf& perf) {
  perf::RecordCommand command{.perf = perf.path,
                              .own = own_options_,
                              .options = options_.perf_options,
                              .pids = record_all_ ? std::vector<base::Pid>{} : roster_.for_perf(),
                              .cgroup = options_.scope.cgroup};
  // Older perfs beside one that asks for them, as perf 7 does, die of it (kernel-notes.md). The
  // option is of 5.12.
  if (command.pids.empty() && perf.major >= 6) {
    command.own.emplace_back("--no-buildid-mmap");
  }
  switch (perf_.start(std::move(command), signals_.fd())) {
    case perf::Answer::kAcknowledged:
      base::reached(base::Step::kPerfRuns);
      return std::nullopt;
    case perf::Answer::kEnded:
      if (roster_.drop_exited(logger_)) {
        perf_.undo_output();  // else the next one would take an earlier file's place
        return start_perf(perf);
      }
      // A thread that perf has seen was gone when its event was to be opened (ESRCH).
      if (!record_all_ && may_record_all() &&
          perf_.process().stderr_text().find("No such process") != std::string::npos) {
        record_all_ = true;
        drops_others_ = true;
        engine_->narrow_to(roster_.for_perf());
        perf_.undo_output();
        return start_perf(perf);
      }
      return perf_failed();
    case perf::Answer::kInterrupted:
      (void)take_signal();
      return give_up(128 + signal_);
    case perf::Answer::kDeadline:
      break;
  }
  return give_up(kFailure);
}

// Of the whole system they are enabled from the start, and to enable all events for a moment may
// keep perf too busy to hear that they are to be disabled. Its failure is found out by "enable"; a
// signal is taken by the next step. Samples may come of it, which the file does not keep; what is
// read by their program has to be known by then.
void Recording::enable_side_events() {
  if (!options_.all && !record_all_) {
    perf_.enable_side_events(signals_.fd());
  }
  base::reached(base::Step::kSideEventsEnabled);
}

// perf did, or the command that was held back.
int Recording::ended_before_launch() {
  auto& command = *workload_.process();
  if (const auto status = command.wait(Deadline::after(std::chrono::milliseconds{500}))) {
    logger_.error("the command exited before the recording began: {}", base::describe(*status));
    return give_up(status->shell_status());
  }
  const int status = perf_failed();
  return status == 0 ? kFailure : status;
}

}  // namespace pyinject::session
