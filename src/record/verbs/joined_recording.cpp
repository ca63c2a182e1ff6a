#include "base/format.hpp"
#include "base/text.hpp"
#include "perfdata/input.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "pyinject/targets/this_session.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "record/completion.hpp"
#include "record/events_of_perf.hpp"
#include "record/interruption.hpp"
#include "record/sampled_targets.hpp"
#include "record/stack_sampler.hpp"
#include "record/thread_name_watch.hpp"
#include "record/verbs/join_recording.hpp"
#include "record/verbs/join_targets.hpp"
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
  Joiner(const JoinOptions& options, RunningPerf running, StackSampler& sampler,
         std::optional<clockid_t> clock, base::Logger& logger, RecordObserver& observer,
         targets::StopRequests& stop)
      : options_{options},
        running_{std::move(running)},
        sampler_{sampler},
        sampled_{sampler},
        logger_{logger},
        observer_{observer},
        interruption_{stop, false},
        thread_names_{logger, clock},
        manager_{targets::make_manager(
            *detector_, sampled_, logger,
            {.strict = false,
             .owner = targets::this_session(),
             .interrupted = [this] { return interruption_.take(); },
             .cancellation = &interruption_.cancellation(),
             .on_event = [this](const targets::Event& event) { observer_.on_event(event); }})} {
    manager_->on_activation([this](const targets::ActiveTarget& active) {
      files_.keep(active.target.id.pid);
      observer_.observed(active);
    });
  }

  // PERF: for the names; empty: none.
  int run(const std::string& perf) {
    const int status = steps(perf);
    observer_.counted(manager_->stats());
    return status;
  }

 private:
  int steps(const std::string& perf);
  bool choose_targets();
  bool wait();
  void detach();
  int complete(const std::string& perf);

  [[nodiscard]] std::string path() const { return running_.path().value_or(running_.first_path); }

  const JoinOptions& options_;
  RunningPerf running_;
  StackSampler& sampler_;
  SampledTargets sampled_;
  base::Logger& logger_;
  RecordObserver& observer_;
  Interruption interruption_;
  std::unique_ptr<python::Detector> detector_ = python::make_detector(python::Purpose::kObserve);
  JoinTargets targets_;
  weave::RecordedFiles files_;
  ThreadNameWatch thread_names_;
  std::unique_ptr<targets::Manager> manager_;
  std::unique_ptr<targets::LateArrivals> arrivals_;
  struct {
    bool now = false;
    Deadline::Clock::time_point begun;
    std::chrono::nanoseconds elapsed{};
  } joined_;
};

int Joiner::steps(const std::string& perf) {
  targets::raise_descriptor_limit();
  auto watch = watch::watch_processes(logger_);  // before the first scan, to miss no process
  const bool chosen = choose_targets();
  if (interruption_.cancellation().cancelled()) {
    (void)interruption_.take();
    return interruption_.status();
  }
  if (!chosen) {
    return kFailure;
  }
  auto described = describe_events(running_.events, {});
  if (!targets_.roots.empty()) {
    described.recorded = targets_.roots.front();
  }
  if (!sampler_.join(running_.pid, described)) {
    logger_.error("the BPF program cannot be attached to perf's events: {}",
                  sampler_.why_not_attached());
    return kFailure;
  }
  joined_.now = true;
  joined_.begun = Deadline::Clock::now();
  sampler_.start();
  logger_.info("joined perf record (pid {}), {}: recording until perf ends, or Ctrl-C",
               running_.pid.value(), base::printable(path()));
  arrivals_ = std::make_unique<targets::LateArrivals>(
      std::move(watch), *detector_, *manager_, logger_, targets_.set, targets::ArrivalListener{});
  arrivals_->ignore(running_.pid);
  std::vector<base::Pid> pythons;
  for (const auto& active : manager_->active()) {
    pythons.push_back(active->target.id.pid);
  }
  arrivals_->add_known(pythons);
  arrivals_->retry(targets_.roots);
  arrivals_->retry(targets_.others);
  thread_names_.look(manager_->active());
  const bool ended = wait();
  detach();
  if (!ended) {
    logger_.warning("{} stays as perf writes it, without Python stacks", base::printable(path()));
    return interruption_.status();
  }
  return complete(perf);
}

bool Joiner::choose_targets() {
  targets_ = targets_of(running_, logger_);
  auto selection = manager_->select(targets_.named ? targets_.roots : std::vector<base::Pid>{});
  auto more = manager_->select(targets_.others, false);
  std::ranges::move(more.targets, std::back_inserter(selection.targets));
  std::erase_if(targets_.others, [&](base::Pid pid) { return more.no_pythons.contains(pid); });
  if (targets_.named && selection.targets.empty()) {
    logger_.error("perf records no Python process that can be read");
    return false;
  }
  return manager_->activate_all(std::move(selection.targets));
}

// True: perf has exited. False: second signal.
bool Joiner::wait() {
  while (true) {
    std::array<pollfd, 3> all{
        {{.fd = running_.process.get(), .events = POLLIN, .revents = 0},
         {.fd = interruption_.fd(), .events = POLLIN, .revents = 0},
         {.fd = joined_.now ? arrivals_->fd() : -1, .events = POLLIN, .revents = 0}}};
    if (::poll(all.data(), all.size(), kProgressInterval) < 0 && errno != EINTR) {
      throw base::SystemError{"cannot wait for the end of perf", errno};
    }
    if (all[2].revents != 0) {
      arrivals_->handle();
    }
    if (all[0].revents != 0) {
      return true;
    }
    if (interruption_.take()) {
      if (!joined_.now) {
        return false;
      }
      detach();
      logger_.warning(
          "detached from perf record: later samples have no Python stacks; those collected are "
          "added to {} when perf ends; another Ctrl-C drops them",
          base::printable(path()));
    }
    if (joined_.now) {
      thread_names_.look_again(manager_->active());
    }
    struct stat facts {};
    const bool known = ::fstat(running_.file.get(), &facts) == 0;
    observer_.progress(
        Deadline::Clock::now() - joined_.begun,
        known ? std::optional{static_cast<std::uint64_t>(facts.st_size)} : std::nullopt);
  }
}

// Inherited events keep the program; its output is discarded.
void Joiner::detach() {
  observer_.stopped();
  if (!std::exchange(joined_.now, false)) {
    return;
  }
  sampler_.leave();
  thread_names_.look(manager_->active());
  joined_.elapsed = Deadline::Clock::now() - joined_.begun;
  arrivals_->stop();
  (void)manager_->deactivate_all();
  sampler_.stop();
  interruption_.drop_all();  // timeout(1) sends its signal twice
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

int Joiner::complete(const std::string& perf) {
  const auto path = running_.path();
  if (!path) {
    logger_.error("{}: perf's output was removed; the Python stacks are lost",
                  base::printable(running_.first_path));
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
       .perf = perf,
       .names_beside = perf.empty(),
       .lost = "Python stacks",
       .interrupted = [this] { return interruption_.take(); },
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
                        .elapsed = joined_.elapsed,
                        .targets = manager_->stats().activated,
                        .maps = {},
                        .sampler = sampled});
  }
  return interruption_.signal() == 0 ? 0 : interruption_.status();
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

int join_recording(const JoinOptions& options, base::Logger& logger, RecordObserver& observer,
                   targets::StopRequests& stop) {
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
  Joiner joiner{options, std::move(found), sampler, clock, logger, observer, stop};
  return joiner.run(perf);
}

}  // namespace pyinject::record
