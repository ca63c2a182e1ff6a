// The recording up to the point where the events are enabled and the command runs.
#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "record/call_graph.hpp"
#include "record/verbs/function_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <set>
#include <utility>

#include <sys/stat.h>

namespace pyinject::record {

using base::Deadline;

FunctionRecorder::FunctionRecorder(const RecordPlan& plan, base::Logger& logger,
                                   RecordObserver& observer, targets::StopRequests& stop)
    : plan_{plan},
      logger_{logger},
      observer_{observer},
      stop_{stop},
      perf_{plan.perf_options->output, logger},
      workload_{plan.command, logger} {}

FunctionRecording FunctionRecorder::run() {
  FunctionRecording result;
  result.status = steps();
  if (events_ && !remove_events()) {
    result.status = kFailure;
  }
  result.files = std::move(files_);
  return result;
}

int FunctionRecorder::steps() {
  if (const int status = workload_.check(); status != 0) {
    return status;
  }
  const auto perf = perf::locate_perf(plan_.perf, Deadline::after(kPerfAnswers));
  open_events();
  if (!choose_targets() || !make_events()) {
    return kFailure;
  }
  logger_.info(
      "each call and each return of a Python function costs the target 1 to 3 us during the "
      "recording: calls are 20 to 60 times slower");
  if (const auto status = start_perf_for_all(perf)) {
    return *status;
  }
  if (const auto status = judge(perf_.enable(stop_.fd()))) {
    return *status;
  }
  enabled_at_ = Deadline::Clock::now();
  logger_.debug("the events are enabled");
  if (!workload_.start()) {
    return finish({.end = End::kCommand});
  }
  WaitSources sources{.perf = perf_.process(),
                      .requests = stop_,
                      .command = workload_.process(),
                      .targets = watch_,
                      .on_tick = [this] { on_tick(); },
                      .until = {}};
  if (plan_.duration) {
    sources.until = Deadline::after(*plan_.duration);
  }
  return finish(wait_for_end(sources));
}

bool FunctionRecorder::choose_targets() {
  for (const auto pid : targets::without_repetitions(plan_.pids())) {
    const auto begin = Deadline::Clock::now();
    auto found = python::find_function_probes(pid);
    const auto* const refusal = std::get_if<python::Refusal>(&found);
    observer_.on_event(
        {.kind = refusal == nullptr ? targets::EventKind::kDetected : targets::EventKind::kSkipped,
         .pid = pid,
         .reason = refusal == nullptr ? std::nullopt : std::optional{refusal->reason},
         .duration = Deadline::Clock::now() - begin});
    if (refusal != nullptr) {
      logger_.log(plan_.strict ? base::LogLevel::kError : base::LogLevel::kWarning,
                  fmt::format("pid {}: {}", pid.value(), python::describe(*refusal)));
      if (plan_.strict) {
        return false;
      }
      continue;
    }
    auto& target = std::get<python::FunctionProbes>(found);
    logger_.debug("pid {}: {} at function calls in {}", pid.value(),
                  base::counted(target.probes.size(), "probe"), target.interpreter);
    pids_.push_back(pid);
    watch_.add(target.id);
    targets_.push_back(std::move(target));
  }
  if (targets_.empty()) {
    logger_.error("no process can be recorded");
  }
  return !targets_.empty();
}

// Also opened for a recording that is refused later: every run removes what killed sessions left.
void FunctionRecorder::open_events() {
  auto opened = perf::UprobeEvents::open(perf::this_owner());
  if (const auto* const missing = std::get_if<perf::NoTracefs>(&opened)) {
    no_events_ = missing->why;
    return;
  }
  events_ = std::make_unique<perf::UprobeEvents>(std::get<perf::UprobeEvents>(std::move(opened)));
  if (const auto count = events_->remove_abandoned(perf::is_alive); count > 0) {
    logger_.info("removed {} left in tracefs by killed sessions", base::counted(count, "event"));
  }
}

bool FunctionRecorder::make_events() {
  if (!events_) {
    logger_.error("--functions: {}", no_events_);
    return false;
  }
  // Two events at one address would count each call twice.
  std::set<std::pair<dev_t, ino_t>> known;
  for (const auto& target : targets_) {
    struct stat facts {};
    if (::fstat(target.file.get(), &facts) != 0) {
      throw base::SystemError{"cannot stat " + target.interpreter, errno};
    }
    if (known.emplace(facts.st_dev, facts.st_ino).second) {
      add_events(target, known.size() - 1);
    }
  }
  return true;
}

// Names are like "entry_0_2": they tell the events of one file apart (src/calls).
void FunctionRecorder::add_events(const python::FunctionProbes& target, std::size_t file) {
  std::size_t number = 0;
  for (const auto& probe : target.probes) {
    events_->add(fmt::format("{}_{}_{}", probe.entry ? "entry" : "return", file, number++),
                 target.file.get(), probe.offset, probe.counter_offset, probe.arguments);
  }
}

std::vector<std::string> FunctionRecorder::own_options() const {
  std::vector<std::string> own;
  if (!plan_.perf_options->clock) {
    own.insert(own.end(), {"-k", "mono"});
  }
  const auto buffer = affordable_buffer();
  if (buffer != 0 && !plan_.perf_options->buffers) {
    own.insert(own.end(), {"-m", fmt::format("{}K", buffer >> 10U)});
  }
  for (const auto& event : events_->events()) {
    own.insert(own.end(), {"-e", event});
  }
  return own;
}

// perf records the threads that it has listed, and those that start once it has opened its events:
// threads that start in between are missing. Then perf is started again.
std::optional<int> FunctionRecorder::start_perf_for_all(const perf::Perf& perf) {
  constexpr int kMostStarts = 5;  // a program that starts threads continuously still gets recorded
  for (int start = 1;; ++start) {
    const auto before = threads_of_targets();
    if (const auto status = start_perf(perf)) {
      return status;
    }
    auto newborn = threads_of_targets();
    std::erase_if(newborn, [&before](base::Tid tid) { return before.contains(tid); });
    if (newborn.empty()) {
      return std::nullopt;
    }
    if (start == kMostStarts) {
      logger_.warning(
          "new threads start all the time, {} of them while perf started: their calls may be "
          "missing",
          newborn.size());
      return std::nullopt;
    }
    logger_.debug("{} started meanwhile: perf is started again",
                  base::counted(newborn.size(), "new thread"));
    (void)perf_.discard(stop_.fd());
  }
}

std::set<base::Tid> FunctionRecorder::threads_of_targets() const {
  std::set<base::Tid> threads;
  for (const auto pid : pids_) {
    const auto tids = procfs::list_tasks(pid);
    threads.insert(tids.begin(), tids.end());
  }
  return threads;
}

std::optional<int> FunctionRecorder::start_perf(const perf::Perf& perf) {
  return judge(perf_.start(
      {.perf = perf.path, .own = own_options(), .options = plan_.perf_options, .pids = pids_},
      stop_.fd()));
}

std::optional<int> FunctionRecorder::judge(perf::Answer answer) {
  switch (answer) {
    case perf::Answer::kAcknowledged:
      return std::nullopt;
    case perf::Answer::kEnded:
      return perf_.report_failure();
    case perf::Answer::kInterrupted:
      return give_up(128 + stop_.next().value_or(SIGINT));
    case perf::Answer::kDeadline:
      break;
  }
  return give_up(kFailure);
}

void FunctionRecorder::on_tick() {
  struct stat facts {};
  const auto& output = perf_.output();
  const bool known = !output.several && ::stat(output.path.c_str(), &facts) == 0;
  observer_.progress(
      Deadline::Clock::now() - enabled_at_,
      known ? std::optional{static_cast<std::uint64_t>(facts.st_size)} : std::nullopt);
}

FunctionRecording record_functions(const RecordPlan& plan, base::Logger& logger,
                                   RecordObserver& observer, targets::StopRequests& stop) {
  return FunctionRecorder{plan, logger, observer, stop}.run();
}

}  // namespace pyinject::record
