#include "base/format.hpp"
#include "base/text.hpp"
#include "perfdata/input.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "pyinject/targets/this_session.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "record/completion.hpp"
#include "record/events_of_perf.hpp"
#include "record/sampled_targets.hpp"
#include "record/stack_sampler.hpp"
#include "record/thread_name_watch.hpp"
#include "record/verbs/join_recording.hpp"
#include "record/verbs/running_perf.hpp"
#include "targets/late_arrivals.hpp"
#include "targets/target_map.hpp"
#include "targets/target_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>
#include <sys/stat.h>

namespace pyinject::record {

namespace {

using base::Deadline;

constexpr int kProgressInterval = 500;  // ms

class Joiner {
 public:
  Joiner(const JoinOptions& options, std::string perf, RunningPerf running, StackSampler& sampler,
         std::optional<clockid_t> clock, base::Logger& logger, RecordObserver& observer)
      : options_{options},
        perf_{std::move(perf)},
        running_{std::move(running)},
        sampler_{sampler},
        sampled_{sampler},
        logger_{logger},
        observer_{observer},
        thread_names_{logger, clock},
        manager_{targets::make_manager(
            *detector_, sampled_, logger,
            {.strict = false,
             .owner = targets::this_session(),
             .interrupted = [this] { return take_signal(); },
             .cancellation = &interrupted_,
             .on_event = [this](const targets::Event& event) { observer_.on_event(event); }})} {
    signals_.listen([this](int) { interrupted_.cancel(); });
    manager_->on_activation([this](const targets::ActiveTarget& active) {
      files_.keep(active.target.id.pid);
      observer_.observed(active);
    });
  }

  int run() {
    const int status = steps();
    observer_.counted(manager_->stats());
    return status;
  }

 private:
  int steps();
  bool choose_targets();
  [[nodiscard]] bool may_be_recorded(const procfs::Status& process);
  [[nodiscard]] bool began_after_perf(const std::optional<procfs::Stat>& task) const;
  void warn_of_births(const std::vector<base::Pid>& roots);
  bool wait();
  void detach();
  int complete();

  [[nodiscard]] bool take_signal() {
    const auto signal = signals_.next();
    signal_ = signal.value_or(signal_);
    return signal.has_value();
  }
  [[nodiscard]] std::string path() const { return running_.path().value_or(path_at_join_); }

  const JoinOptions& options_;
  std::string perf_;  // empty: none
  RunningPerf running_;
  std::string path_at_join_ = running_.path().value_or("perf's file");
  StackSampler& sampler_;
  SampledTargets sampled_;
  base::Logger& logger_;
  RecordObserver& observer_;
  base::Cancellation interrupted_;
  targets::StopSignals signals_;
  int signal_ = 0;  // the latest one received
  std::unique_ptr<python::Detector> detector_ = python::make_detector(python::Purpose::kObserve);
  targets::TargetSet target_set_ = targets::TargetSet::of_scope({});
  std::vector<base::Pid> roots_;  // processes passed to perf, or started by it
  std::vector<base::Pid> chosen_;
  std::set<base::Pid> no_pythons_;  // among CHOSEN_
  weave::RecordedFiles files_;
  ThreadNameWatch thread_names_;
  std::unique_ptr<targets::Manager> manager_;
  std::unique_ptr<targets::LateArrivals> arrivals_;
  bool joined_ = false;
  Deadline::Clock::time_point begun_;
  std::chrono::nanoseconds elapsed_{};
};

int Joiner::steps() {
  targets::raise_descriptor_limit();
  auto watch = watch::watch_processes(logger_);  // before the first scan, to miss no process
  const bool chosen = choose_targets();
  if (interrupted_.cancelled()) {
    (void)take_signal();
    return 128 + signal_;
  }
  if (!chosen) {
    return signal_ == 0 ? kFailure : 128 + signal_;
  }
  auto described = describe_events(running_.events, {});
  if (!roots_.empty()) {
    described.recorded = roots_.front();
  }
  if (!sampler_.join(running_.pid, described)) {
    logger_.error("the BPF program cannot be attached to perf's events: {}",
                  sampler_.why_not_attached());
    return kFailure;
  }
  joined_ = true;
  begun_ = Deadline::Clock::now();
  sampler_.start();
  logger_.info("joined perf record (pid {}), {}: recording until perf ends, or Ctrl-C",
               running_.pid.value(), base::printable(path()));
  arrivals_ = std::make_unique<targets::LateArrivals>(
      std::move(watch), *detector_, *manager_, logger_, target_set_, targets::ArrivalListener{});
  arrivals_->ignore(running_.pid);
  std::vector<base::Pid> pythons;
  for (const auto& active : manager_->active()) {
    pythons.push_back(active->target.id.pid);
  }
  arrivals_->add_known(pythons);
  std::erase_if(chosen_, [this](base::Pid pid) { return no_pythons_.contains(pid); });
  arrivals_->retry(chosen_);
  thread_names_.look(manager_->active());
  const bool ended = wait();
  detach();
  if (!ended) {
    logger_.warning("{} stays as perf writes it, without Python stacks", base::printable(path()));
    return 128 + signal_;
  }
  return complete();
}

bool Joiner::choose_targets() {
  const auto& targets = running_.targets;
  const bool named = !targets.tasks.empty();
  auto& roots = roots_;
  for (const auto piece : base::split(targets.tasks, ',')) {
    const auto number = base::parse_number<pid_t>(piece);
    const auto status = number ? procfs::read_status(base::Pid{*number}) : std::nullopt;
    if (status && may_be_recorded(*status)) {
      roots.push_back(status->process);
    }
  }
  roots = targets::without_repetitions(roots);
  if (targets.launched) {
    roots = targets::children_of({running_.pid});
  }
  target_set_ = named || targets.launched ? targets::TargetSet::of_families(roots)
                                          : targets::TargetSet::of_scope({.user = running_.user});
  chosen_ = target_set_.choose(targets::visible_processes());
  std::erase_if(chosen_, [&](base::Pid pid) {
    return pid == running_.pid || std::ranges::find(roots, pid) != roots.end() ||
           (named && !began_after_perf(procfs::read_stat(pid)));  // perf does not record it
  });
  if (named || targets.launched) {
    warn_of_births(roots);
  }
  auto selection = manager_->select(named ? roots : std::vector<base::Pid>{});
  auto more = manager_->select(chosen_, false);
  std::ranges::move(more.targets, std::back_inserter(selection.targets));
  chosen_.insert(chosen_.end(), roots.begin(), roots.end());
  no_pythons_ = std::move(more.no_pythons);
  if (named && selection.targets.empty()) {
    logger_.error("perf records no Python process that can be read");
    return false;
  }
  return manager_->activate_all(std::move(selection.targets));
}

// The words of its command line may name any process: its file must not get what the user of perf
// may not read.
bool Joiner::may_be_recorded(const procfs::Status& process) {
  const bool may = !running_.user || std::ranges::all_of(process.uids, [this](uid_t uid) {
    return uid == running_.user;
  });
  if (!may) {
    logger_.warning(
        "pid {}: it belongs to uid {}, and perf record to uid {}, which may not record it: it gets "
        "no Python stacks",
        process.process.value(), process.uids[1], *running_.user);
  }
  return may;
}

bool Joiner::began_after_perf(const std::optional<procfs::Stat>& task) const {
  const auto perf = procfs::read_stat(running_.pid);
  return task && perf && task->start_time > perf->start_time;
}

// Threads and children that started since perf opened its events have inherited them without the
// BPF program.
void Joiner::warn_of_births(const std::vector<base::Pid>& roots) {
  std::size_t count = chosen_.size();
  for (const auto pid : roots) {
    const auto tasks = procfs::list_tasks(pid);
    count += static_cast<std::size_t>(std::ranges::count_if(tasks, [&](base::Tid tid) {
      return tid.value() != pid.value() && began_after_perf(procfs::read_stat(pid, tid));
    }));
  }
  if (count != 0) {
    logger_.warning(
        "{} started after perf: {} samples may have no Python functions",
        count == 1 ? "1 thread or process" : fmt::format("{} threads or processes", count),
        count == 1 ? "its" : "their");
  }
}

// True: perf has exited. False: second signal.
bool Joiner::wait() {
  while (true) {
    std::array<pollfd, 3> all{
        {{.fd = running_.process.get(), .events = POLLIN, .revents = 0},
         {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
         {.fd = joined_ ? arrivals_->fd() : -1, .events = POLLIN, .revents = 0}}};
    if (::poll(all.data(), all.size(), kProgressInterval) < 0 && errno != EINTR) {
      throw base::SystemError{"cannot wait for the end of perf", errno};
    }
    if (all[2].revents != 0) {
      arrivals_->handle();
    }
    if (all[0].revents != 0) {
      return true;
    }
    if (take_signal()) {
      if (!joined_) {
        return false;
      }
      detach();
      logger_.warning(
          "detached from perf record: later samples have no Python stacks; those collected are "
          "added to {} when perf ends; another Ctrl-C drops them",
          base::printable(path()));
    }
    if (joined_) {
      thread_names_.look_again(manager_->active());
    }
    struct stat facts {};
    const bool known = ::fstat(running_.file.get(), &facts) == 0;
    observer_.progress(
        Deadline::Clock::now() - begun_,
        known ? std::optional{static_cast<std::uint64_t>(facts.st_size)} : std::nullopt);
  }
}

// Inherited events keep the program; its output is discarded.
void Joiner::detach() {
  observer_.stopped();
  if (!std::exchange(joined_, false)) {
    return;
  }
  sampler_.leave();
  thread_names_.look(manager_->active());
  elapsed_ = Deadline::Clock::now() - begun_;
  arrivals_->stop();
  (void)manager_->deactivate_all();
  sampler_.stop();
  while (signals_.next()) {  // timeout(1) sends its signal twice
  }
}

// Whether the file of a perf that has exited is unfinished because perf died. If it is unreadable,
// post-processing reports that.
bool is_unfinished(const std::string& path) {
  try {
    return std::holds_alternative<perfdata::Input>(perfdata::Input::open(path, true));
  } catch (const base::SystemError&) {
    return false;
  }
}

int Joiner::complete() {
  const auto path = running_.path();
  if (!path) {
    logger_.error("{}: perf's output was removed; the Python stacks are lost",
                  base::printable(path_at_join_));
    return kFailure;
  }
  auto* const comms = thread_names_.history().empty() ? nullptr : &thread_names_.history();
  weave::RecordingContext context{.stacks = &sampler_.stacks(),
                                  .native = &sampler_.stacks(),
                                  .from = sampler_.stacks().first(),
                                  .until = sampler_.stacks().last(),
                                  .interpreters = sampler_.interpreters(),
                                  .dropped = sampler_.dropped(),
                                  .comms = comms,
                                  .scope = weave::RecordingContext::Scope::kPythons,
                                  .open_map = targets::open_perf_map};
  WovenFile woven{.path = *path, .summary = {}};
  const bool unfinished = is_unfinished(*path);
  const auto processed = Completion{files_, logger_, observer_}.replace(
      *path,
      {.unfinished = unfinished,
       .flags = options_.flags,
       .perf = perf_,
       .names_beside = perf_.empty(),
       .lost = "Python stacks",
       .interrupted = [this] { return take_signal(); },
       .context = std::move(context)},
      woven.summary);
  if (processed == Processed::kLeftAlone || processed == Processed::kFailed) {
    return kFailure;
  }
  if (processed == Processed::kDone) {
    if (unfinished) {
      logger_.warning("perf record died; {} has the samples written until then",
                      base::printable(*path));
    }
    auto sampled = sampler_.stats();
    sampled.matched += woven.summary.exiting;
    sampled.unmatched = woven.summary.without_record;
    sampled.not_joined = woven.summary.of_another_time;
    sampled.python_only = woven.summary.python_only;
    sampled.python_only_cut = woven.summary.python_only_cut;
    observer_.finished({.output = {.path = *path},
                        .woven = {std::move(woven)},
                        .files = {},
                        .elapsed = elapsed_,
                        .targets = manager_->stats().activated,
                        .maps = {},
                        .sampler = sampled});
  }
  return signal_ == 0 ? 0 : 128 + signal_;
}

// The perf whose build-id cache gets the names. A container may have none, if perf runs outside;
// one that the user names must be there.
std::string perf_for_names(const perf::PerfSearch& search, base::Logger& logger) {
  try {
    return perf::locate_perf(search, Deadline::after(kPerfAnswers)).path;
  } catch (const base::Error&) {
    if (search.option || !search.environment.value_or("").empty()) {
      throw;
    }
  }
  logger.info("no perf is on PATH: names will be next to perf's file, in FILE.names");
  return {};
}

}  // namespace

int join_recording(const JoinOptions& options, base::Logger& logger, RecordObserver& observer) {
  const auto refuse = [&](const bpf::Unavailable& why) {
    logger.error("pid {} cannot be joined: {}", options.perf.value(), phrase(why));
    return kFailure;
  };
  const auto perf = perf_for_names(options.search, logger);
  auto running = inspect_running_perf(options.perf, Deadline::after(kPerfAnswers));
  if (const auto* const why = std::get_if<bpf::Unavailable>(&running)) {
    return refuse(*why);
  }
  auto opened = StackSampler::open(options.flags, true, logger);
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    return refuse(*why);
  }
  auto& sampler = *std::get<std::unique_ptr<StackSampler>>(opened);
  auto& found = std::get<RunningPerf>(running);
  if (const auto why = check_joinable(found.events, sampler.by_clock())) {
    return refuse(*why);
  }
  const auto clock = clock_of(found.events);
  sampler.keep_time_by(clock);
  Joiner joiner{options, perf, std::move(found), sampler, clock, logger, observer};
  return joiner.run();
}

}  // namespace pyinject::record
