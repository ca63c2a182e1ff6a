#include "record/stack_sampler.hpp"

#include "base/clock.hpp"
#include "base/format.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/record/plan.hpp"
#include "record/events_of_perf.hpp"
#include "record/recording_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <exception>
#include <utility>

#include <linux/perf_event.h>
#include <poll.h>

namespace pyinject::record {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The ring holds more samples than any sensible frequency yields in this time, and wakes the reader
// when it fills up.
constexpr milliseconds kPollInterval{50};
// perf's files are closed shortly before it becomes waitable.
constexpr milliseconds kUntilWaitable{500};
constexpr milliseconds kLookForModules{1000};
constexpr milliseconds kLookForModulesWithTasks{200};

// Every event takes a program on Linux 6.18; older kernels may refuse it for breakpoints.
bool takes_program(const perf::SamplingEvent& event) {
  return event.type != std::uint32_t{PERF_TYPE_BREAKPOINT};
}

// Once: REFUSED were refused before.
void warn_of_refused(const bpf::Sampler::Attached& attached, std::uint64_t refused,
                     base::Logger& logger) {
  if (attached.refused != 0 && refused == 0) {
    logger.warning(
        "{} of perf's events cannot have a BPF program ({}): samples of such events have no Python "
        "functions",
        attached.refused, attached.why);
  }
}

}  // namespace

StackSampler::StackSampler(const weave::WeaveFlags& flags, base::Logger& logger)
    : tasks_{flags.tasks},
      without_stacks_{tracepoints_without_stacks(flags)},
      logger_{logger},
      budget_{std::make_shared<base::RecordingBudget>()},
      stacks_{weave::SampledStacks::Matching::kExact, budget_} {
  constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;
  budget_->bytes = base::Budget{kMostBytes};
}

std::variant<std::unique_ptr<StackSampler>, bpf::Unavailable> StackSampler::open(
    const weave::WeaveFlags& flags, bool native, base::Logger& logger) {
  std::unique_ptr<StackSampler> self{new StackSampler{flags, logger}};
  auto* const sampler = self.get();
  auto opened = bpf::Sampler::open(
      {.gil = flags.gil, .tasks = flags.tasks, .native = native},
      {.code = [sampler](sample::Code code) { sampler->stacks_.name(std::move(code)); },
       .stack = [sampler](const sample::Stack& stack) { sampler->take(stack); }},
      self->budget_);
  if (auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    return std::move(*why);
  }
  self->sampler_ = std::get<std::unique_ptr<bpf::Sampler>>(std::move(opened));
  if (auto* const tables = self->sampler_->native_tables()) {
    self->native_ = std::make_unique<NativeRefresh>(*tables, logger);
  }
  self->targets_.emplace(flags, *self->sampler_, self->native_.get(), logger);
  return self;
}

StackSampler::~StackSampler() { stop(); }

void StackSampler::add_native_of(const CallGraphWishes& wishes, const base::Cancellation& cancel) {
  if (native_ && wishes.all) {
    native_->add_all(cancel);
    return;
  }
  for (const auto pid : wishes.recorded) {
    if (cancel.stopped()) {
      return;
    }
    add_native(pid);
  }
}

StackSampler::Attached StackSampler::attach(PerfRun& run) {
  auto& perf = run.process();
  auto described = describe_events_in(run.output().path, without_stacks_);
  described.recorded = run.recorded();
  only_tracepoints_ = described.only_tracepoints;
  const auto attached = sampler_->attach(perf.pid(), described);
  why_not_attached_.clear();
  if (attached.events + attached.refused == 0) {
    if (perf.wait(base::Deadline::after(kUntilWaitable))) {
      return Attached::kEnded;
    }
    why_not_attached_ = attached.why.empty() ? "perf has no events open" : attached.why;
    return Attached::kNone;
  }
  if (attached.refused != 0) {
    const auto events = perf.sampling_events(base::Deadline::after(kPerfAnswers));
    if (perf.try_wait()) {
      return Attached::kEnded;
    }
    // perf's own event, which does not sample, always accepts it.
    if (attached.events == 0 || (!events.empty() && std::ranges::none_of(events, takes_program))) {
      why_not_attached_ = fmt::format("none of the sampling events takes it ({})", attached.why);
      return Attached::kNone;
    }
  }
  warn_of_refused(attached, attached_.refused, logger_);
  attached_ = attached;
  return Attached::kYes;
}

// Which sampling events accept the program is checked before: perf has described them in its file.
bool StackSampler::join(base::Pid perf, const bpf::EventsOfPerf& events) {
  const auto attached = sampler_->join(perf, events);
  why_not_attached_.clear();
  if (attached.events == 0) {
    why_not_attached_ =
        attached.taken ? "they already have a program, of another join or a filter (has_program)"
        : attached.why.empty() ? "perf has no events open"
                               : attached.why;
    return false;
  }
  warn_of_refused(attached, attached_.refused, logger_);
  attached_ = attached;
  return true;
}

void StackSampler::start() {
  if (!thread_.joinable()) {
    thread_ = std::thread{[this] { run(); }};
  }
}

void StackSampler::stop() {
  ending_ = true;
  if (!thread_.joinable()) {
    return;
  }
  thread_.join();
  sampler_->leave();
  if (sampler_->counters().lost != 0) {
    stacks_.some_are_lost();
  }
}

void StackSampler::run() {
  try {
    bool last = false;
    bool more = false;
    base::Deadline next_look_for_modules = base::Deadline::after(nanoseconds{0});
    while (!last || more) {
      last = ending_;
      std::array<pollfd, 2> readable{
          pollfd{.fd = sampler_->fd(), .events = POLLIN, .revents = 0},
          pollfd{.fd = native_ ? native_->fd() : -1, .events = POLLIN, .revents = 0}};
      if (!last && !more) {
        const auto wait = native_ ? native_->until_due(kPollInterval) : kPollInterval;
        ::poll(readable.data(), readable.size(), static_cast<int>(wait.count()));
      }
      more = sampler_->consume();
      if (native_ && !last) {
        native_->refresh();
      }
      if (!last && next_look_for_modules.expired()) {
        sampler_->look_for_modules();
        next_look_for_modules =
            base::Deadline::after(tasks_ ? kLookForModulesWithTasks : kLookForModules);
      }
    }
  } catch (const std::exception& error) {  // leaving the thread, it would kill this tool
    logger_.error("Python stacks are no longer collected: {}", error.what());
  }
  processor_time_ = base::time_by(CLOCK_THREAD_CPUTIME_ID);
}

void StackSampler::take(const sample::Stack& stack) {
  if (stack.traced && clock_ != std::optional<clockid_t>{CLOCK_MONOTONIC}) {
    return;  // its time cannot be compared with that of a sample
  }
  if (stack.by_clock) {
    stacks_.match(weave::SampledStacks::Matching::kNearest);
  }
  if (native_ && stack.native_end == sample::NativeEnd::kUnmapped) {
    native_->ask(base::Pid{static_cast<pid_t>(stack.pid)});
  }
  stacks_.add(stack);
}

std::vector<weave::Dropped> StackSampler::dropped() const {
  auto result = stacks_.dropped();
  for (const auto& lost : sampler_->lost_names()) {
    result.push_back(
        {.pid = lost.pid, .command = {}, .limit = weave::Limit::kNames, .count = lost.frames});
  }
  return result;
}

SamplerStats StackSampler::stats() const {
  const auto counted = sampler_->counters();
  const auto& matches = stacks_.matches();
  return {.samples = counted.samples,
          .matched = matches.all,
          .with_frames = matches.with_frames,
          .state_found = counted.state_found,
          .state_searched = counted.state_searched,
          .no_state = matches.no_state,
          .no_frames = matches.no_frames,
          .truncated = counted.truncated,
          .unreadable = counted.unreadable,
          .gil_held = counted.gil_held,
          .gil_waited_for = counted.gil_waited_for,
          .lost = counted.lost,
          .lost_names = counted.lost_names,
          .by_clock = counted.by_clock,
          .traced = counted.traced,
          .processor_time = processor_time_};
}

}  // namespace pyinject::record
