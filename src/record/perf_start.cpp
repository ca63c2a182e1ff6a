#include "record/perf_start.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <unistd.h>

namespace pyinject::record {

using base::Deadline;

// perf records the processes passed to it, and what they fork once it has opened its events:
// processes that start in between are missing. Threads and children that start after perf has
// listed them and before the BPF program is attached inherit events without the program, and may
// leave these to their starter when they exit. In these cases perf is started again. If new threads
// and processes never stop coming, perf records the whole system, and the kernel drops unwanted
// samples.
PerfStart::Started PerfStart::start(const perf::Perf& perf) {
  // A program that forks continuously still gets recorded, and soon.
  constexpr int kMostStarts = 5;
  const auto until = Deadline::after(std::chrono::seconds{2});
  const bool inherited = !plan_.whole_system() && !plan_.perf_options->leaves_out_children;
  for (int start = 1;; ++start) {
    const auto before = tasks_of_targets();
    const auto births = program_ == nullptr ? 0 : program_->births();
    if (drops_others_) {
      program_->record_only(roster_.for_perf());
    }
    if (const auto started = start_once(perf); started != Started::kYes) {
      return started;
    }
    // Some may have exited already.
    const bool born = inherited && misses_newborn() && program_->births() != births;
    const bool missed =
        !record_all_ && (born || !std::ranges::includes(before, tasks_of_targets()));
    // On a busy machine, the first start alone may take so long.
    const bool too_late = start > 1 && !misses_newborn() && until.expired();
    if (start == kMostStarts || too_late) {
      if (missed || (plan_.families() && !record_all_ && roster_.has_newborn())) {
        logger_.warning(
            "new threads or processes start all the time: some of them are missing, or have no "
            "Python functions in their samples");
      }
      return Started::kYes;
    }
    bool newborn = plan_.families() && roster_.add_newborn();
    if (newborn && record_all_) {  // perf records them: the program must not drop them
      program_->record_only(roster_.for_perf());
      newborn = false;
    }
    const bool too_many = record_all_ && !may_record_all();
    if (!newborn && !missed && !too_many) {
      return Started::kYes;
    }
    record_all_ = may_record_all() && (record_all_ || (missed && start > 1));
    drops_others_ = drops_others_ || record_all_;
    logger_.debug("perf is started again{}: {}", record_all_ ? ", for the whole system" : "",
                  too_many ? "it would record samples of other processes"
                           : "new threads or processes started meanwhile");
    if (!perf_.discard(interruption_.fd())) {
      (void)interruption_.take();
    }
    if (interruption_.signal() != 0) {
      return Started::kInterrupted;
    }
  }
}

std::set<base::Tid> PerfStart::tasks_of_targets() {
  return misses_newborn() ? roster_.tasks() : std::set<base::Tid>{};
}

bool PerfStart::misses_newborn() const {
  return program_ != nullptr && program_->misses_newborn_threads();
}

// Whether perf may record the whole system: if this tool runs as root, perf has its privileges.
bool PerfStart::may_record_all() const {
  return program_ != nullptr && program_->takes_all_events() && !plan_.whole_system() &&
         !plan_.launches() && ::geteuid() == 0;
}

PerfStart::Started PerfStart::start_once(const perf::Perf& perf) {
  if (const auto started = run(perf); started != Started::kYes) {
    return started;
  }
  switch (engine_.attach(perf_, manager_)) {
    case Engine::Attached::kYes:
      return Started::kYes;
    case Engine::Attached::kPerfEnded:
      return Started::kPerfEnded;
    case Engine::Attached::kFailed:
      break;
  }
  return Started::kFailed;
}

PerfStart::Started PerfStart::run(const perf::Perf& perf) {
  perf::RecordCommand command{.perf = perf.path,
                              .own_recorder = perf.own,
                              .own = options_,
                              .options = plan_.perf_options,
                              .pids = record_all_ ? std::vector<base::Pid>{} : roster_.for_perf(),
                              .cgroup = plan_.scope().cgroup};
  // Older perfs die if they run next to one that asks for this, as perf 7 does (kernel-notes.md).
  // The option exists since 5.12.
  if (command.pids.empty() && perf.major >= 6) {
    command.own.emplace_back("--no-buildid-mmap");
  }
  switch (perf_.start(std::move(command), interruption_.fd())) {
    case perf::Answer::kAcknowledged:
      base::reached(base::Step::kPerfRuns);
      return Started::kYes;
    case perf::Answer::kEnded:
      if (roster_.drop_exited(logger_)) {
        perf_.undo_output();  // otherwise the next perf would overwrite an earlier file
        return run(perf);
      }
      // A thread that perf had listed exited before its event was opened (ESRCH).
      if (!record_all_ && may_record_all() &&
          perf_.process().stderr_text().find("No such process") != std::string::npos) {
        record_all_ = true;
        drops_others_ = true;
        program_->record_only(roster_.for_perf());
        perf_.undo_output();
        return run(perf);
      }
      return Started::kPerfFailed;
    case perf::Answer::kInterrupted:
      (void)interruption_.take();
      return Started::kInterrupted;
    case perf::Answer::kDeadline:
      break;
  }
  return Started::kFailed;
}

// With the whole system the side-band events are enabled from the start; enabling all events for a
// moment may keep perf too busy to read the command that disables them. The "enable" command
// detects a failure here; the next step handles a signal. This may yield samples, which the file
// does not keep; whatever the BPF program reads for them must be set up by now.
void PerfStart::enable_side_events() {
  if (!plan_.whole_system() && !record_all_) {
    perf_.enable_side_events(interruption_.fd());
  }
  base::reached(base::Step::kSideEventsEnabled);
}

}  // namespace pyinject::record
