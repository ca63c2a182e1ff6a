// The recording up to the point where the events are enabled and the command runs.
#include "record/recording.hpp"

#include "base/clock.hpp"
#include "base/fault.hpp"
#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/targets/this_session.hpp"
#include "record/recording_clock.hpp"

#include <csignal>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::record {

using base::Deadline;

Recording::Recording(const RecordPlan& plan, std::unique_ptr<Engine> engine, base::Logger& logger)
    : plan_{plan},
      logger_{logger},
      engine_{std::move(engine)},
      observer_{engine_->observer()},
      perf_{plan.perf_options->output, logger},
      workload_{plan.command, logger},
      roster_{plan},
      maps_{plan.maps, logger},
      thread_names_{logger, recording_clock(*plan.perf_options)},
      manager_{targets::make_manager(engine_->detector(), engine_->target_handler(), logger,
                                     manager_options())} {
  signals_.listen([this](int) { interrupted_.cancel(); });
  manager_->on_activation([this](const targets::ActiveTarget& active) {
    const bool news = engine_->activated(active);
    files_.keep(active.target.id.pid);
    if (news) {
      observer_.activated(active);
    }
  });
}

targets::ManagerOptions Recording::manager_options() {
  return {.strict = plan_.strict,
          .owner = targets::this_session(),
          .late_activations = plan_.whole_system() || plan_.families() || plan_.launches(),
          .tried_again = plan_.whole_system() || plan_.families(),
          .families = plan_.families(),
          .activation_deadline = targets::ManagerOptions{}.activation_deadline,
          .deactivation_deadline = plan_.deactivation_deadline,
          .interrupted = [this] { return take_signal(); },
          .cancellation = &interrupted_,
          .before_activation =
              [this](const python::Target& target) { engine_->before_activation(target); },
          .on_event =
              [this](const targets::Event& event) {
                if (event.off_by_program) {
                  gaps_.add(perfdata::Gap::kSwitchedOff, event.pid);
                }
                observer_.on_event(event);
              }};
}

bool Recording::take_signal() {
  const auto signal = signals_.next();
  if (!signal) {
    return false;
  }
  const int before = signal_;
  if (before == 0 || (plan_.duration && before == SIGHUP)) {
    signal_ = *signal;
  }
  if (!plan_.duration || !completing_) {
    return true;
  }
  return *signal != SIGHUP && before != 0 && before != SIGHUP;
}

int Recording::run() {
  int status = kFailure;
  try {
    status = steps();
  } catch (...) {
    (void)leave();
    throw;
  }
  return leave() ? status : kFailure;
}

// False: something may still be on; the guard keeps trying.
bool Recording::leave() {
  const bool all_off = switch_off();
  observer_.counted(manager_->stats());
  if (all_off) {
    engine_->dismiss();
  }
  return all_off;
}

// Steps R1 to R8 of docs/architecture.md; finish() has the others.
int Recording::steps() {
  // R1: touch nothing if COMMAND or perf cannot run.
  if (const int status = workload_.check(); status != 0) {
    return status;
  }
  located_ = perf::locate_perf(plan_.perf, Deadline::after(kPerfAnswers));
  base::reached(base::Step::kSessionBegun);
  engine_->begin();
  base::reached(base::Step::kGuardRuns);
  // R2, R3: select targets and call graph.
  if (const auto status = choose_targets()) {
    return *status;
  }
  base::reached(base::Step::kTargetsChosen);
  choose_call_graph();
  if (interrupted_.cancelled()) {  // nothing has been touched
    (void)take_signal();
    return 128 + signal_;
  }
  // R4 to R6: start perf with its events disabled, activate the targets.
  const bool before_perf = engine_->takes_targets_before_perf();
  if (const auto status = before_perf ? activate() : std::nullopt) {
    return *status;
  }
  if (const auto status = start_perf_for_all(located_)) {
    return *status;
  }
  enable_side_events();
  if (const auto status = before_perf ? std::nullopt : activate()) {
    return *status;
  }
  follow_arrivals();
  // R7, R8: enable the events while COMMAND runs.
  if (const auto status = enable()) {
    return *status;
  }
  look_at_waits();
  thread_names_.look(manager_->active());
  if (!workload_.start()) {
    return finish({.end = End::kCommand});
  }
  if (workload_.process() != nullptr) {
    base::reached(base::Step::kCommandStarted);
  }
  return finish(wait());
}

EndOfRecording Recording::wait() {
  WaitSources sources{.perf = perf_.process(),
                      .signals = signals_,
                      .command = workload_.process(),
                      .targets = roster_.watch(),
                      .targets_matter = !plan_.whole_system(),
                      .on_tick = [this] { on_tick(); },
                      .arrivals = arrivals_.get(),
                      .until = {}};
  if (plan_.duration) {
    sources.until = Deadline::after(*plan_.duration);
  }
  return plan_.launches() ? wait_for_launched(sources, logger_) : wait_for_end(sources);
}

std::optional<int> Recording::activate() {
  if (manager_->activate_all(std::exchange(targets_, {}))) {
    if (!manager_->active().empty() || plan_.expects_more()) {
      return std::nullopt;
    }
    logger_.error("no process could be activated");
  }
  return give_up(signal_ == 0 ? kFailure : 128 + signal_);
}

std::optional<int> Recording::enable() {
  if (const auto clock = recording_clock(*plan_.perf_options)) {
    begun_at_ = base::now_by(*clock);
  }
  const auto answer = perf_.enable(signals_.fd());
  enabled_at_ = Deadline::Clock::now();
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
  return give_up(kFailure);
}

// perf may have exited because its processes have.
int Recording::perf_ended_early() {
  if (plan_.launches()) {
    return ended_before_launch();
  }
  enabled_at_ = Deadline::Clock::now();
  return finish({.end = roster_.watch().all_exited_within(std::chrono::milliseconds{500})
                            ? End::kTargets
                            : End::kPerf});
}

// A launched command has not started yet: it cannot wait.
void Recording::look_at_waits() {
  if (!plan_.flags.off_cpu || plan_.launches()) {
    return;
  }
  std::vector<const python::Target*> targets;
  for (const auto& active : manager_->active()) {
    targets.push_back(&active->target);
  }
  waits_.emplace(logger_);
  waits_->look(targets, plan_.whole_system() ? std::vector<base::Pid>{} : roster_.for_perf(),
               recording_clock(*plan_.perf_options));
}

std::optional<std::uint64_t> Recording::output_bytes() const {
  struct stat facts {};
  const auto& output = perf_.output();
  if (output.pipe || output.several || ::stat(output.path.c_str(), &facts) != 0 ||
      !S_ISREG(facts.st_mode)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(facts.st_size);
}

void Recording::on_tick() {
  base::reached(base::Step::kRecording);
  if (!plan_.launches()) {  // the command owns the terminal
    observer_.progress(Deadline::Clock::now() - enabled_at_, output_bytes());
  }
  engine_->on_tick(*manager_);
  thread_names_.look_again(manager_->active());
}

}  // namespace pyinject::record
