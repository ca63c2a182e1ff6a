// From the end of the recording to the summary; and the ways out when it comes to none.
#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/fault.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/procfs/own_rights.hpp"
#include "pyinject/procfs/reopen.hpp"
#include "session/post_processing.hpp"
#include "session/recorder.hpp"
#include "session/recording_clock.hpp"
#include "session/recording_end.hpp"

#include <algorithm>
#include <csignal>

#include <fcntl.h>

namespace pyinject::session {

using base::Deadline;

// Can be called again: what was tried once is not tried a second time.
bool Recorder::switch_off() {
  if (arrivals_) {
    arrivals_->stop();
  }
  const bool own_off = manager_->deactivate_all();
  base::reached(base::Step::kTargetsOff);
  const bool all_off = children_.switch_off(*manager_) && own_off;
  base::reached(base::Step::kChildrenOff);
  return all_off;
}

int Recorder::finish(EndOfRecording end) {
  observer_.stopped();
  completing_ = true;
  if (end.end == End::kSignal) {
    signal_ = end.signal;
  }
  while (options_.launch && signals_.next()) {  // what ended the command is not meant for the rest
  }
  if (command_ && end.end != End::kCommand) {
    command_->send_signal(SIGTERM);
  }
  const auto answer = disable_events(*perf_, signals_.fd(), perf_told_to_end_, logger_);
  if (answer == perf::Answer::kInterrupted) {
    (void)take_signal();
  } else if (const auto clock = recording_clock(options_.perf_options);
             clock && answer == perf::Answer::kAcknowledged) {
    ended_at_ = now_by(*clock);
  }
  elapsed_ = Deadline::Clock::now() - enabled_at_;
  if (answer != perf::Answer::kAcknowledged) {  // while events are enabled stacks are looked at
    stop_perf();
  }
  if (arrivals_) {
    arrivals_->stop();
  }
  frames_.stop();
  if (sampler_ != nullptr) {
    sampler_->stop();
  }
  base::reached(base::Step::kEventsDisabled);
  const bool all_off = switch_off();
  stop_perf();
  if (command_) {
    make_command_end(*command_, logger_);
  }
  base::reached(base::Step::kPerfEnded);
  collect_maps();
  const int status = status_of(end);
  logger_.debug("{}", manager_->stats().summary());
  return all_off ? status : kFailure;
}

void Recorder::stop_perf() {
  if (!perf_told_to_end_ && perf_->request("stop", Deadline::after(kPerfAnswers), signals_.fd()) ==
                                perf::Answer::kInterrupted) {
    (void)take_signal();
  }
  const auto deadline = Deadline::after(kPerfCompletes);
  bool interrupted = false;
  while (!interrupted && !deadline.expired() && !perf_->stuck()) {
    if (perf_->wait_for_file(deadline, signals_.fd())) {
      return;
    }
    interrupted = take_signal() || !options_.duration;
  }
  perf_told_to_end_ = make_perf_end(*perf_, logger_);
}

int Recorder::status_of(EndOfRecording end) {
  if (!perf_completed(*perf_, perf_told_to_end_)) {
    const int status = perf_failed();
    save_unfinished();
    return status;
  }
  const auto incomplete = post_process();
  summarize();
  if (incomplete) {
    return *incomplete;
  }
  if (command_problem_ != 0) {
    return command_problem_;
  }
  return status_after(end, command_.get(), manager_->stats().activated, logger_);
}

// perf has ended by itself, or not as it should.
int Recorder::perf_failed() {
  switch_off();
  return report_perf_failure(*perf_, logger_);
}

// What perf had written is not lost when it dies.
void Recorder::save_unfinished() {
  if (output_.pipe || output_.several ||
      post_process_file(output_.path, true, true) != Processed::kDone) {
    return;
  }
  logger_.warning("{} has what perf record had written before it died",
                  base::printable(output_.path));
  summarize();
}

int Recorder::give_up(int status) {
  switch_off();
  discard();
  return status;
}

// Nothing was recorded: perf ends, if it was started, and its file goes.
void Recorder::discard() {
  if (!perf_) {
    return;
  }
  const auto deadline = Deadline::after(kPerfAnswers);
  if (perf_->request("stop", deadline, signals_.fd()) == perf::Answer::kInterrupted ||
      !perf_->wait(deadline, signals_.fd())) {
    (void)take_signal();
  }
  repeat_perf(*perf_, base::LogLevel::kDebug, logger_);
  perf_.reset();  // which makes one end that has not
  rollback_->undo();
}

void Recorder::collect_maps() {
  if (arrivals_) {
    arrivals_->handle();  // who has ended meanwhile
  }
  for (const auto& active : manager_->active()) {
    if (active.activation.map.valid()) {
      collect_map(active.activation.map.get(), active.target.id.pid);
    }
  }
  for (const auto pid : distant_maps_.pids()) {
    if (const auto map = distant_maps_.take(pid); map.valid()) {
      collect_map(map.get(), pid);
    }
  }
}

void Recorder::collect_map(int fd, base::Pid pid) {
  try {
    maps_.push_back(perf::collect_map(fd, pid, options_.maps));
    if (maps_.back().cut_short) {
      logger_.warning("pid {}: its perf map is longer than {} MiB: the rest was not copied",
                      pid.value(), options_.maps.most_bytes >> 20U);
    }
  } catch (const base::Error& error) {
    logger_.warning("{}; its Python functions may have no names", error.what());
  }
}

base::UniqueFd Recorder::open_map(std::uint32_t pid) const {
  for (const auto& active : manager_->active()) {
    const auto& map = active.activation.map;
    if (static_cast<std::uint32_t>(active.target.id.pid.value()) == pid && map.valid()) {
      return procfs::reopen(map, O_RDONLY | O_CLOEXEC);
    }
  }
  return open_perf_map(pid);
}

// The status, when the user has had enough of it, or a file lacks what it was recorded for.
std::optional<int> Recorder::post_process() {
  if (output_.pipe) {
    return std::nullopt;
  }
  std::vector<std::string> paths;
  for (const auto& file : perf::parse_written_files(perf_->stderr_text())) {
    paths.push_back(file.path);
  }
  if (paths.empty() && !output_.several) {
    paths.push_back(output_.path);
  }
  bool lost = false;
  for (const auto& path : paths) {
    const auto processed = post_process_file(path, &path == &paths.back());
    if (processed == Processed::kCancelled) {
      return 128 + (signal_ == 0 ? SIGINT : signal_);
    }
    lost = lost || (processed == Processed::kLeftAlone && !lost_with_completion().empty());
  }
  return lost ? std::optional{kFailure} : std::nullopt;
}

// What no file has before it is completed, and `weave` cannot bring later.
std::string Recorder::lost_with_completion() const {
  std::string what = sampler_ != nullptr ? "Python stacks" : "";
  if (options_.off_cpu) {
    what += what.empty() ? "times off the processor" : " and times off the processor";
  }
  return what;
}

std::function<bool(std::uint32_t)> Recorder::wanted_samples() const {
  if (!options_.all) {
    return {};
  }
  if (!options_.scope.chosen_from_file()) {
    // perf samples the whole machine; whom it does not see from here has no number (0 or -1).
    return procfs::in_first_pid_namespace()
               ? std::function<bool(std::uint32_t)>{}
               : [](std::uint32_t pid) { return pid != 0 && pid != ~0U; };
  }
  return [this](std::uint32_t pid) { return population_.ever_contained(pid); };
}

weave::Knowledge Recorder::knowledge() {
  weave::Knowledge knowledge{.wanted = wanted_samples(),
                             .open_map = [this](std::uint32_t pid) { return open_map(pid); }};
  if (sampler_ != nullptr) {
    knowledge.stacks = &sampler_->stacks();
    knowledge.interpreters = sampler_->interpreters();
  } else {
    knowledge.stacks = frames_.history().empty() ? nullptr : &frames_.history();
    knowledge.interpreters = weave::interpreters_of(frames_.evaluators());
  }
  return knowledge;
}

Processed Recorder::post_process_file(const std::string& path, bool last, bool unfinished) {
  WovenFile woven{.path = path, .summary = {}};
  const auto processed = post_process_in_place(path, options_.keep_raw,
                                               {.input = {},
                                                .output = {},
                                                .unfinished = unfinished,
                                                .lines = options_.lines,
                                                .gil = options_.gil,
                                                .tasks = options_.tasks,
                                                .off_cpu = options_.off_cpu,
                                                .begun_at = begun_at_,
                                                .ended_at = last ? ended_at_ : 0,
                                                .perf = perf_path_,
                                                .names_beside = options_.names_beside,
                                                .lost = lost_with_completion(),
                                                .interrupted = [this] { return take_signal(); },
                                                .knowledge = knowledge()},
                                               files_, logger_, &observer_, woven.summary);
  if (processed == Processed::kDone) {
    woven_.push_back(std::move(woven));
  } else if (options_.scope.chosen_from_file()) {
    logger_.warning("{} has the samples of all processes: -u and --comm were not applied", path);
  }
  return processed;
}

void Recorder::summarize() {
  repeat_perf(*perf_, base::LogLevel::kDebug, logger_);
  std::optional<SamplerStats> sampled;
  if (sampler_ != nullptr) {
    sampled = sampler_->stats();
    for (const auto& file : woven_) {
      sampled->unmatched += file.summary.without_record;
      sampled->python_only += file.summary.python_only;
      sampled->python_only_cut += file.summary.python_only_cut;
    }
  }
  if (sampled && sampled->by_clock != 0 &&
      recording_clock(options_.perf_options) != std::optional<clockid_t>{CLOCK_MONOTONIC}) {
    logger_.warning(
        "this kernel does not tell the program a sample's time, and -k chose another clock than "
        "mono: samples cannot find their Python stacks");
  }
  warn_without_off_cpu(woven_, logger_);
  const auto effort = frames_.effort();
  logger_.debug(
      "frames were read {} times, in {} us of processor time", effort.rounds,
      std::chrono::duration_cast<std::chrono::microseconds>(effort.processor_time).count());
  const auto& stats = manager_->stats();
  const auto reasons = python::all_reasons();
  const bool several = stats.activated > 1 || std::ranges::any_of(reasons, [&](auto reason) {
                         return stats.of(reason) != 0;
                       });
  observer_.finished({.output = output_,
                      .woven = std::move(woven_),
                      .files = perf::parse_written_files(perf_->stderr_text()),
                      .elapsed = elapsed_,
                      .targets = manager_->stats().activated,
                      .maps = maps_,
                      .sampler = sampled,
                      .counters = several ? stats.summary() : std::string{}});
}

}  // namespace pyinject::session
