// Until the events are enabled and the command runs.
#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/fault.hpp"
#include "pyinject/session/this_session.hpp"
#include "session/recorder.hpp"
#include "session/recording_clock.hpp"
#include "session/recording_end.hpp"

#include <cerrno>
#include <csignal>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::session {

namespace {

using base::Deadline;
using Clock = Deadline::Clock;

bool stdout_is_pipe() {
  struct stat facts {};
  return ::fstat(STDOUT_FILENO, &facts) == 0 && S_ISFIFO(facts.st_mode);
}

}  // namespace

perf::Output output_of(const RecordOptions& options) {
  return perf::output_of(options.perf_options, stdout_is_pipe());
}

Recorder::Recorder(const RecordOptions& options, python::Detector& detector,
                   python::Injector& injector, StackSampler* sampler, base::Logger& logger,
                   RecordObserver& observer)
    : options_{options},
      detector_{detector},
      injector_{injector},
      sampler_{sampler},
      logger_{logger},
      observer_{observer},
      output_{output_of(options)},
      population_{options.all ? Population::of_scope(options.scope)
                              : Population::of_families(options.pids)},
      children_{detector, logger, this_session().session},
      frames_{logger, recording_clock(options.perf_options)},
      manager_{make_manager(detector, injector, logger, manager_options())} {
  if (sampler_ != nullptr) {
    sampler_->keep_time_by(recording_clock(options_.perf_options));
  }
  manager_->on_activation([this](const ActiveTarget& active) {
    if (active.activation.map.valid()) {
      guard_->keep_map(active.target, active.activation.map.get());
    }
    base::reached(base::Step::kActivated);
    if (sampler_ != nullptr) {
      files_.keep(active.target.id.pid);
      if (sampler_attached_) {
        observer_.activated(active);
      }
      return;
    }
    if (options_.launch && active.activation.before == python::TrampolineState::kOnByItself) {
      files_.keep(active.target.id.pid);  // on since its first instruction, as it should be
      return;
    }
    if (options_.backfill) {
      frames_.add(active);
    }
    files_.keep(active.target.id.pid);
    observer_.activated(active);
  });
}

ManagerOptions Recorder::manager_options() {
  return {.strict = options_.strict,
          .owner = this_session(),
          .late_activations = options_.all || options_.children || options_.launch,
          .activation_deadline = ManagerOptions{}.activation_deadline,
          .deactivation_deadline = options_.deactivation_deadline,
          .interrupted = [this] { return take_signal(); },
          .before_activation =
              [this](const python::Target& target) {
                if (guard_) {
                  children_.watch(ancestor_now(target.id));
                  guard_->watch(target);
                }
              },
          .on_event = [this](const Event& event) { happened(event); }};
}

// Until the second engine is attached another one may take its place, which begins anew: what
// happened is told when that is known.
void Recorder::happened(const Event& event) {
  if (sampler_ == nullptr || sampler_attached_) {
    observer_.happened(event);
  } else {
    held_.push_back(event);
  }
}

void Recorder::tell_held() {
  for (const auto& event : std::exchange(held_, {})) {
    observer_.happened(event);
  }
}

void Recorder::tell_counts() {
  const bool another_engine = sampler_ != nullptr && options_.engine == Engine::kAuto &&
                              signal_ == 0 && !sampler_->why_not_attached().empty();
  if (!another_engine) {
    tell_held();
    observer_.counted(manager_->stats());
  }
}

bool Recorder::take_signal() {
  const auto signal = signals_.next();
  if (!signal) {
    return false;
  }
  const int before = signal_;
  if (before == 0 || (options_.duration && before == SIGHUP)) {
    signal_ = *signal;
  }
  if (!options_.duration || !completing_) {
    return true;
  }
  return *signal != SIGHUP && before != 0 && before != SIGHUP;
}

int Recorder::run() {
  int status = kFailure;
  try {
    status = steps();
  } catch (...) {
    switch_off();
    tell_counts();
    throw;
  }
  const bool all_off = switch_off();
  tell_counts();
  if (!all_off) {
    return kFailure;  // the guard goes on trying
  }
  if (guard_) {
    guard_->dismiss();
  }
  return status;
}

int Recorder::steps() {
  if (const int status = refuse_command(options_.command, logger_); status != 0) {
    return status;
  }
  const auto perf = perf::locate_perf(options_.perf, Deadline::after(kPerfAnswers));
  perf_path_ = perf.path;
  base::reached(base::Step::kSessionBegun);
  if (sampler_ == nullptr) {  // else there is nothing to be switched off
    guard_ = std::make_unique<Guard>(
        detector_, injector_, logger_,
        GuardOptions{.session = this_session().session, .maps = options_.maps});
  }
  base::reached(base::Step::kGuardRuns);
  if (const auto status = choose_targets()) {
    return *status;
  }
  base::reached(base::Step::kTargetsChosen);
  choose_call_graph();
  // The sampler knows its targets before perf opens its events: then it knows all children that are
  // recorded with them, too.
  if (const auto status = sampler_ == nullptr ? std::nullopt : activate()) {
    return *status;
  }
  if (const auto status = start_perf_for_all(perf)) {
    return *status;
  }
  enable_side_events();
  if (const auto status = sampler_ == nullptr ? activate() : std::nullopt) {
    return *status;
  }
  follow_arrivals();
  if (const auto status = enable()) {
    return *status;
  }
  start_command();
  WaitSources sources{.perf = *perf_,
                      .signals = signals_,
                      .command = command_.get(),
                      .targets = watch_,
                      .targets_matter = !options_.all,
                      .on_tick = [this] { on_tick(); },
                      .arrivals = arrivals_.get(),
                      .until = {}};
  if (options_.duration) {
    sources.until = Deadline::after(*options_.duration);
  }
  if (command_problem_ != 0) {
    return finish({.end = End::kCommand});
  }
  return finish(options_.launch ? wait_for_launched(sources, logger_) : wait_for_end(sources));
}

std::optional<int> Recorder::activate() {
  if (manager_->activate_all(std::exchange(targets_, {}))) {
    if (!manager_->active().empty() || options_.all || options_.launch) {
      return std::nullopt;
    }
    logger_.error("none of the processes could be activated");
  }
  return give_up(signal_ == 0 ? kFailure : 128 + signal_);
}

std::optional<int> Recorder::enable() {
  if (const auto clock = recording_clock(options_.perf_options)) {
    begun_at_ = now_by(*clock);
  }
  // On a machine that is short of processors it has taken more than 5 s.
  const auto answer = perf_->request("enable", Deadline::after(kPerfSetsUp), signals_.fd());
  enabled_at_ = Clock::now();
  if (answer == perf::Answer::kAcknowledged) {
    base::reached(base::Step::kEventsEnabled);
    logger_.debug("the events are enabled");
    return std::nullopt;
  }
  if (answer == perf::Answer::kEnded) {
    return perf_ended_early();
  }
  if (answer == perf::Answer::kInterrupted) {
    (void)take_signal();
    return give_up(128 + signal_);
  }
  logger_.error(
      "perf record did not enable its events within {} s: it may be kept too busy to listen; fewer "
      "events help (-F, -e, fewer targets)",
      kPerfSetsUp.count());
  return give_up(kFailure);
}

// It may have ended because its processes have.
int Recorder::perf_ended_early() {
  if (options_.launch) {
    return ended_before_launch();
  }
  enabled_at_ = Clock::now();
  return finish({.end = watch_.all_exited_within(std::chrono::milliseconds{500}) ? End::kTargets
                                                                                 : End::kPerf});
}

void Recorder::start_command() {
  if (options_.command.empty()) {
    return;
  }
  try {
    if (options_.launch) {
      command_->release();
    } else {
      command_ = std::make_unique<base::Child>(base::ChildOptions{.argv = options_.command});
    }
    base::reached(base::Step::kCommandStarted);
  } catch (const base::SystemError& error) {
    logger_.error("{}", error.what());
    command_problem_ = error.code() == ENOENT ? 127 : 126;
  }
}

std::optional<std::uint64_t> Recorder::output_bytes() const {
  struct stat facts {};
  if (output_.pipe || output_.several || ::stat(output_.path.c_str(), &facts) != 0 ||
      !S_ISREG(facts.st_mode)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(facts.st_size);
}

void Recorder::on_tick() {
  base::reached(base::Step::kRecording);
  if (!options_.launch) {  // whose terminal it is
    observer_.progress(Clock::now() - enabled_at_, output_bytes());
  }
  if (launched_) {
    launched_->look(*manager_);
  }
}

}  // namespace pyinject::session
