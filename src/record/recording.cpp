#include "record/recording.hpp"

#include "base/fault.hpp"
#include "base/format.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/targets/this_session.hpp"
#include "recorder/options.hpp"

#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::record {

using base::Deadline;

Recording::Recording(const RecordPlan& plan, std::unique_ptr<Engine> engine, base::Logger& logger,
                     targets::StopRequests& stop)
    : plan_{plan},
      logger_{logger},
      interruption_{stop, plan.duration.has_value()},
      engine_{std::move(engine)},
      perf_{plan.perf_options->output, logger},
      workload_{plan.command, logger},
      roster_{plan},
      observations_{plan, logger},
      manager_{targets::make_manager(engine_->detector(), engine_->target_handler(), logger,
                                     manager_options())} {
  manager_->on_activation([this](const targets::ActiveTarget& active) {
    const bool news = engine_->activated(active);
    observations_.activated(active.target.id.pid);
    if (news) {
      engine_->observer().activated(active);
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
          .interrupted = [this] { return interruption_.take(); },
          .cancellation = &interruption_.cancellation(),
          .before_activation =
              [this](const python::Target& target) { engine_->before_activation(target); },
          .on_event =
              [this](const targets::Event& event) {
                if (event.off_by_program) {
                  observations_.switched_off_by_program(event.pid);
                }
                engine_->observer().on_event(event);
              }};
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

RecordResult Recording::result(int status) {
  return {.status = status, .signal = interruption_.signal(), .summary = std::move(summary_)};
}

// False: something may still be on; the guard keeps trying.
bool Recording::leave() {
  const bool all_off = switch_off();
  engine_->observer().counted(manager_->stats());
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
  if (const int status = check_own_recorder(); status != 0) {
    return status;
  }
  base::reached(base::Step::kSessionBegun);
  engine_->begin();
  base::reached(base::Step::kGuardRuns);
  // R2, R3: select targets and call graph.
  TargetChoice choice{plan_, *engine_, *manager_, roster_, workload_, interruption_, logger_};
  const bool chosen = choice.choose();
  if (chosen) {
    base::reached(base::Step::kTargetsChosen);
    choice.choose_call_graph();
  }
  if (interruption_.cancellation().cancelled()) {  // nothing has been touched
    (void)interruption_.take();
    return interruption_.status();
  }
  if (!chosen) {
    return kFailure;
  }
  // R4 to R6: start perf with its events disabled, activate the targets.
  const bool before_perf = engine_->takes_targets_before_perf();
  if (const auto status = before_perf ? activate(choice.take_targets()) : std::nullopt) {
    return *status;
  }
  PerfStart start{plan_, choice.options(), *engine_, *manager_, roster_,
                  perf_, interruption_,    logger_};
  if (const auto status = after(start.start(located_))) {
    return *status;
  }
  start.enable_side_events();
  if (const auto status = before_perf ? std::nullopt : activate(choice.take_targets())) {
    return *status;
  }
  follow_arrivals(choice.take_watch());
  // R7, R8: enable the events while COMMAND runs.
  if (const auto status = enable()) {
    return *status;
  }
  observations_.look(manager_->active(), roster_);
  if (!workload_.start()) {
    return finish({.end = End::kCommand});
  }
  if (workload_.process() != nullptr) {
    base::reached(base::Step::kCommandStarted);
  }
  return finish(wait());
}

int Recording::check_own_recorder() {
  if (!located_.own) {
    return 0;
  }
  if (const auto why = recorder::refusal(plan_.perf_options.words())) {
    logger_.error("{}", *why);
    return kUsage;
  }
  if (plan_.perf.recorder == perf::RecorderChoice::kPerfOrOwn) {
    logger_.log(plan_.told_engine ? base::LogLevel::kDebug : base::LogLevel::kInfo,
                "perf is not installed: recording without it");
  }
  return 0;
}

std::optional<int> Recording::after(PerfStart::Started started) {
  switch (started) {
    case PerfStart::Started::kYes:
      return std::nullopt;
    case PerfStart::Started::kInterrupted:
      return give_up(interruption_.status());
    case PerfStart::Started::kFailed:
      return give_up(kFailure);
    case PerfStart::Started::kPerfFailed:
      return perf_failed();
    case PerfStart::Started::kPerfEnded:
      break;
  }
  return perf_ended_early();
}

void Recording::follow_arrivals(std::unique_ptr<watch::ProcessWatch> watch) {
  if (!watch) {
    return;
  }
  arrivals_ = std::make_unique<targets::LateArrivals>(
      std::move(watch), engine_->detector(), *manager_, logger_, roster_.targets(),
      targets::ArrivalListener{
          .forked = [this](base::Pid child) { observations_.forked(child); },
          .ended =
              [this](base::Pid pid, const std::shared_ptr<const targets::ActiveTarget>& active) {
                observations_.ended(pid, active.get());
                if (active) {
                  engine_->forget(*active);
                }
              }});
  std::vector<base::Pid> pythons;
  for (const auto& active : manager_->active()) {
    pythons.push_back(active->target.id.pid);
  }
  arrivals_->ignore(perf_.process().pid());
  arrivals_->add_known(pythons);
  if (!plan_.launches()) {  // otherwise COMMAND is held, and still runs this tool's program
    arrivals_->retry(roster_.possible_pythons());
  }
}

EndOfRecording Recording::wait() {
  WaitSources sources{.perf = perf_.process(),
                      .requests = interruption_.requests(),
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

std::optional<int> Recording::activate(std::vector<python::Target> targets) {
  if (manager_->activate_all(std::move(targets))) {
    if (!manager_->active().empty() || plan_.expects_more()) {
      return std::nullopt;
    }
    logger_.error("no process could be activated");
  }
  return give_up(interruption_.signal() == 0 ? kFailure : interruption_.status());
}

std::optional<int> Recording::enable() {
  observations_.begins();
  const auto answer = perf_.enable(interruption_.fd());
  observations_.enabled();
  if (answer == perf::Answer::kAcknowledged) {
    base::reached(base::Step::kEventsEnabled);
    logger_.debug("the events are enabled");
    return std::nullopt;
  }
  if (answer == perf::Answer::kEnded) {
    return perf_ended_early();
  }
  if (answer == perf::Answer::kInterrupted) {
    (void)interruption_.take();
    return give_up(interruption_.status());
  }
  return give_up(kFailure);
}

// perf may have exited because its processes have.
int Recording::perf_ended_early() {
  if (plan_.launches()) {
    return ended_before_launch();
  }
  observations_.enabled();
  return finish({.end = roster_.watch().all_exited_within(std::chrono::milliseconds{500})
                            ? End::kTargets
                            : End::kPerf});
}

// perf exited, or the held command.
int Recording::ended_before_launch() {
  auto& command = *workload_.process();
  if (const auto status = command.wait(Deadline::after(std::chrono::milliseconds{500}))) {
    logger_.error("the command exited before the recording began: {}", base::describe(*status));
    return give_up(status->shell_status());
  }
  const int status = perf_failed();
  return status == 0 ? kFailure : status;
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
    engine_->observer().progress(observations_.elapsed(), output_bytes());
  }
  engine_->on_tick(*manager_);
  observations_.look_again(manager_->active());
}

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
  engine_->observer().stopped();
  interruption_.completes();
  if (end.end == End::kSignal) {
    interruption_.ended_by(end.signal);
  }
  if (plan_.launches()) {
    interruption_.drop_all();  // those that ended the command
  }
  if (end.end != End::kCommand) {
    workload_.terminate();
  }
  observations_.ends(manager_->active());
  const auto answer = perf_.disable(interruption_.fd());
  if (answer == perf::Answer::kInterrupted) {
    (void)interruption_.take();
  }
  observations_.disabled(answer == perf::Answer::kAcknowledged);
  if (answer != perf::Answer::kAcknowledged) {  // stacks are sampled while the events are enabled
    stop_perf();
  }
  if (arrivals_) {
    arrivals_->stop();
  }
  engine_->events_disabled();
  observations_.look_at_names(manager_->active());
  base::reached(base::Step::kEventsDisabled);
  const bool all_off = switch_off();
  stop_perf();
  workload_.wait_until_ended(interruption_.fd(), [this] { return interruption_.take(); });
  base::reached(base::Step::kPerfEnded);
  if (arrivals_) {
    arrivals_->handle();  // processes that exited in the meantime
  }
  observations_.collect_maps(manager_->active());
  const int status = status_of(end);
  logger_.debug("{}", manager_->stats().summary());
  return all_off ? status : kFailure;
}

void Recording::stop_perf() {
  if (perf_.ask_to_stop(interruption_.fd()) == perf::Answer::kInterrupted) {
    (void)interruption_.take();
  }
  perf_.wait_for_file(Deadline::after(kPerfCompletes), interruption_.fd(),
                      [this] { return interruption_.take() || !plan_.duration; });
}

RecordedOutput Recording::output() {
  return {plan_,   located_,      perf_,         *engine_, *manager_,
          roster_, observations_, interruption_, logger_};
}

int Recording::status_of(EndOfRecording end) {
  if (!perf_.completed()) {
    const int status = perf_failed();
    output().save_unfinished(summary_);
    return status;
  }
  if (const auto incomplete = output().complete(summary_)) {
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

int Recording::give_up(int status) {
  switch_off();
  if (!perf_.discard(interruption_.fd())) {
    (void)interruption_.take();
  }
  return status;
}

}  // namespace pyinject::record
