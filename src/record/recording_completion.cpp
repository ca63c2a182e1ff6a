// The recording from its end to the summary, and the exits when it fails.
#include "base/clock.hpp"
#include "base/fault.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"
#include "record/completion.hpp"
#include "record/recording.hpp"
#include "record/recording_clock.hpp"
#include "targets/cannot_run.hpp"

#include <algorithm>
#include <csignal>

namespace pyinject::record {

using base::Deadline;

// May be called again: does not repeat what was tried before.
bool Recording::switch_off() {
  if (arrivals_) {
    arrivals_->stop();
  }
  const bool own_off = manager_->deactivate_all();
  base::reached(base::Step::kTargetsOff);
  const bool all_off = engine_->switch_off(*manager_) && own_off;
  base::reached(base::Step::kChildrenOff);
  return all_off;
}

int Recording::finish(EndOfRecording end) {
  observer_.stopped();
  completing_ = true;
  if (end.end == End::kSignal) {
    signal_ = end.signal;
  }
  while (plan_.launches() && signals_.next()) {  // drop the signals that ended the command
  }
  if (end.end != End::kCommand) {
    workload_.terminate();
  }
  if (waits_) {
    waits_->look_again();
  }
  if (!plan_.whole_system()) {  // on a whole machine, some are always stopped
    for (const auto& active : manager_->active()) {
      targets::add_if_it_cannot_run(active->target.id.pid, gaps_);
    }
  }
  const auto answer = perf_.disable(signals_.fd());
  if (answer == perf::Answer::kInterrupted) {
    (void)take_signal();
  } else if (const auto clock = recording_clock(*plan_.perf_options);
             clock && answer == perf::Answer::kAcknowledged) {
    ended_at_ = base::now_by(*clock);
  }
  elapsed_ = Deadline::Clock::now() - enabled_at_;
  if (answer != perf::Answer::kAcknowledged) {  // stacks are sampled while the events are enabled
    stop_perf();
  }
  if (arrivals_) {
    arrivals_->stop();
  }
  engine_->events_disabled();
  thread_names_.look(manager_->active());
  base::reached(base::Step::kEventsDisabled);
  const bool all_off = switch_off();
  stop_perf();
  workload_.wait_or_kill();
  base::reached(base::Step::kPerfEnded);
  collect_maps();
  const int status = status_of(end);
  logger_.debug("{}", manager_->stats().summary());
  return all_off ? status : kFailure;
}

void Recording::stop_perf() {
  if (perf_.ask_to_stop(signals_.fd()) == perf::Answer::kInterrupted) {
    (void)take_signal();
  }
  perf_.wait_for_file(Deadline::after(kPerfCompletes), signals_.fd(),
                      [this] { return take_signal() || !plan_.duration; });
}

int Recording::status_of(EndOfRecording end) {
  if (!perf_.completed()) {
    const int status = perf_failed();
    save_unfinished();
    return status;
  }
  const auto incomplete = post_process();
  summarize();
  if (incomplete) {
    return *incomplete;
  }
  if (workload_.status() != 0) {
    return workload_.status();
  }
  return status_after(end, workload_.process(), manager_->stats().activated, logger_);
}

// perf exited early or failed.
int Recording::perf_failed() {
  switch_off();
  return perf_.report_failure();
}

// Saves what perf had written before it died.
void Recording::save_unfinished() {
  const auto& output = perf_.output();
  if (output.pipe || output.several ||
      post_process_file(output.path, true, true) != Processed::kDone) {
    return;
  }
  logger_.warning("perf record died; {} has the samples written until then",
                  base::printable(output.path));
  summarize();
}

int Recording::give_up(int status) {
  switch_off();
  discard();
  return status;
}

void Recording::discard() {
  if (!perf_.discard(signals_.fd())) {
    (void)take_signal();
  }
}

void Recording::collect_maps() {
  if (arrivals_) {
    arrivals_->handle();  // processes that exited in the meantime
  }
  for (const auto& active : manager_->active()) {
    maps_.collect(*active);
  }
  for (const auto pid : container_maps_.pids()) {
    maps_.collect(container_maps_.take(pid), pid);
  }
}

// Returns the exit status if the user cancels it, or if a file lacks what it was recorded for.
std::optional<int> Recording::post_process() {
  if (perf_.output().pipe) {
    return std::nullopt;
  }
  const auto paths = perf_.paths();
  bool lost = false;
  for (const auto& path : paths) {
    const auto processed = post_process_file(path, &path == &paths.back());
    if (processed == Processed::kCancelled) {
      return 128 + (signal_ == 0 ? SIGINT : signal_);
    }
    lost = lost || processed == Processed::kFailed ||
           (processed == Processed::kLeftAlone && !lost_with_completion().empty());
  }
  return lost ? std::optional{kFailure} : std::nullopt;
}

// What is permanently lost if post-processing fails.
std::string Recording::lost_with_completion() const {
  std::string what = engine_->lost_if_incomplete();
  if (plan_.flags.off_cpu) {
    what += what.empty() ? "times off the processor" : " and times off the processor";
  }
  if (!plan_.flags.timed_calls.empty()) {
    what += what.empty() ? "times of system calls" : " and times of system calls";
  }
  if (!plan_.flags.memory_calls.empty()) {
    what += what.empty() ? "sizes of memory" : " and sizes of memory";
  }
  return what;
}

std::function<bool(std::uint32_t)> Recording::wanted_samples() const {
  if (!plan_.whole_system()) {
    return {};
  }
  if (!plan_.scope().chosen_from_file()) {
    // perf samples the whole machine; processes invisible from here have pid 0 or -1.
    return procfs::in_first_pid_namespace()
               ? std::function<bool(std::uint32_t)>{}
               : [](std::uint32_t pid) { return pid != 0 && pid != ~0U; };
  }
  return [this](std::uint32_t pid) { return roster_.targets().ever_contained(pid); };
}

weave::RecordingContext Recording::recording_context() {
  weave::RecordingContext context{
      .scope = plan_.whole_system() ? weave::RecordingContext::Scope::kPythons
                                    : weave::RecordingContext::Scope::kProcesses,
      .wanted = wanted_samples(),
      .open_map = [this](std::uint32_t pid) { return targets::open_map(*manager_, pid); }};
  engine_->add_to(context);
  context.waits = waits_ ? waits_->waits() : nullptr;
  context.comms = thread_names_.history().empty() ? nullptr : &thread_names_.history();
  return context;
}

// Those of a file that more files follow.
perfdata::TargetGaps Recording::gaps_before_end() const {
  auto gaps = gaps_;
  gaps.of(perfdata::Gap::kFrozen) = gaps.of(perfdata::Gap::kStopped) = {};
  return gaps;
}

Processed Recording::post_process_file(const std::string& path, bool last, bool unfinished) {
  WovenFile woven{.path = path, .summary = {}};
  const auto processed = Completion{files_, logger_, observer_}.replace(
      path,
      {.recorded = true,
       .unfinished = unfinished,
       .flags = plan_.flags,
       .followed = !last,
       .begun_at = begun_at_,
       .ended_at = last ? ended_at_ : 0,
       .gaps = last ? gaps_ : gaps_before_end(),
       .perf = located_.path,
       .names_beside = plan_.names_beside,
       .lost = lost_with_completion(),
       .interrupted = [this] { return take_signal(); },
       .context = recording_context()},
      woven.summary);
  if (processed == Processed::kDone) {
    woven_.push_back(std::move(woven));
  } else if (plan_.scope().chosen_from_file()) {
    logger_.warning("{} has the samples of all processes: -u and --comm were not applied", path);
  }
  return processed;
}

void Recording::summarize() {
  perf_.repeat_messages(base::LogLevel::kDebug);
  warn_without_off_cpu(woven_, logger_);
  for (const auto& gap : perfdata::sentences(gaps_)) {
    logger_.warning("{}", gap);
  }
  if (waits_) {
    waits_->warn();
  }
  const auto& stats = manager_->stats();
  const auto reasons = python::all_reasons();
  const bool several = stats.activated > 1 || std::ranges::any_of(reasons, [&](auto reason) {
                         return stats.of(reason) != 0;
                       });
  RecordSummary summary{
      .output = perf_.output(),
      .woven = std::move(woven_),
      .files = perf::parse_written_files(perf_.process().stderr_text(), perf_.output()),
      .elapsed = elapsed_,
      .targets = stats.activated,
      .maps = maps_.collected(),
      .no_inline = perf::lacks_addr2line(located_),
      .counters = several ? stats.summary() : std::string{}};
  engine_->summarize(summary);
  observer_.finished(summary);
}

}  // namespace pyinject::record
