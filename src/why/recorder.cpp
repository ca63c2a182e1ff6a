#include "why/recorder.hpp"

#include "base/clock.hpp"
#include "base/import_system.hpp"
#include "bpf/stack_kind.hpp"
#include "procfs/cgroup.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "python/layout/frame_layout.hpp"
#include "why/event_loop.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

#include <unistd.h>

namespace pyinject::why {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMostEvents = 6'000'000;  // some 200 MB
constexpr milliseconds kStep{10};
constexpr milliseconds kBetweenSnapshots{40};
constexpr int kShareOfSnapshots = 10;  // one tenth of a CPU at most

std::uint64_t now() { return base::now_by(CLOCK_MONOTONIC); }

// Polls slow down each system call of the machine, so only event loops are worth it. gevent's may
// start to run, or another greenlet instead, between the looks at stacks and at greenlets.
bool has_loop(const inspect::ProcessSnapshot& process) {
  return !process.tasks.empty() || !process.greenlets.empty() ||
         std::ranges::any_of(process.threads, [](const inspect::ThreadSnapshot& thread) {
           return std::ranges::any_of(
               thread.frames, [](const inspect::Frame& frame) { return is_of_trio(frame.file); });
         });
}

}  // namespace

std::variant<std::unique_ptr<Recorder>, std::string> Recorder::open(
    const python::Target& target, std::chrono::nanoseconds period) {
  std::unique_ptr<Recorder> made{new Recorder{target, period}};
  auto* const self = made.get();
  const auto layout = python::frame_layout(target);
  if (const auto* const why = std::get_if<std::string>(&layout)) {
    return *why;
  }
  const auto first = inspect::take_snapshot(target.id.pid, &target);
  const bool loops = first && has_loop(*first);
  auto opened = self->open_sampler(loops);
  self->recording_.polls = loops && std::holds_alternative<std::unique_ptr<bpf::Sampler>>(opened);
  if (loops && !self->recording_.polls) {  // a kernel without tracepoints of system calls
    opened = self->open_sampler(false);
  }
  if (const auto* const why = std::get_if<bpf::Unavailable>(&opened)) {
    return phrase(*why);
  }
  self->sampler_ = std::get<std::unique_ptr<bpf::Sampler>>(std::move(opened));
  auto rings = EventRings::open(period);
  if (auto* const why = std::get_if<std::string>(&rings)) {
    return std::move(*why);
  }
  self->rings_ = std::get<EventRings>(std::move(rings));
  const std::array pids{target.id.pid};
  self->sampler_->record_only(pids);
  if (self->sampler_->add(target.id.pid, std::get<python::FrameLayout>(layout)) !=
      bpf::Sampler::Added::kYes) {
    return std::string{"its frames are too large for the BPF program"};
  }
  const auto attached = self->sampler_->attach(base::Pid{::getpid()}, {});
  if (attached.events == 0) {
    return "the BPF program cannot be attached: " + attached.why;
  }
  return made;
}

std::variant<std::unique_ptr<bpf::Sampler>, bpf::Unavailable> Recorder::open_sampler(bool polls) {
  using Kind = Event::Kind;
  return bpf::Sampler::open(
      {.gil = true, .wakeups = true, .polls = polls},
      {.code = [this](const sample::Code& code) { on_code(code); },
       .stack = [this](const sample::Stack& stack) { on_stack(stack); },
       .wakeup = [this](const bpf::Moment& moment) { on_moment(moment, Kind::kWakeup); },
       .poll = [this](const bpf::Moment& moment) { on_moment(moment, Kind::kPoll); }});
}

void Recorder::begin() {
  recording_.pid = target_.id.pid.value();
  recording_.version = python::version_text(target_);
  recording_.kernel_names = !symbols_.empty();
  listening_ = inspect::ListeningPorts{procfs::read_sockets(target_.id.pid)};
  at_begin_.machine = procfs::read_machine_usage();
  at_begin_.limits = procfs::read_cpu_limits(target_.id.pid);
  at_begin_.descendants = procfs::read_descendants_usage(target_.id.pid);
  recording_.at_begin = list_threads();
  add_usage();
  at_begin_.threads = usage_;
  rings_->enable();
  recording_.begin = now();
  users_.begin(recording_.begin);
  take_snapshot();
}

void Recorder::on_code(const sample::Code& code) {
  codes_.insert_or_assign(code.number, KnownCode{.function = recording_.names.number(code.qualname),
                                                 .file = recording_.names.number(code.file),
                                                 .imports = code.file == base::kImportSystem});
}

void Recorder::on_stack(const sample::Stack& stack) {
  if (static_cast<int>(stack.pid) != recording_.pid ||
      recording_.python.size() + recording_.wakers.size() >= kMostEvents) {
    return;
  }
  PythonStack python{.time = stack.time,
                     .tid = stack.tid,
                     .gil = stack.gil,
                     .does = stack.does(),
                     .kind = bpf::stack_kind(stack)};
  Lines lines;
  lines.reserve(stack.frames.size());
  for (const auto& frame : stack.frames) {
    if (frame.code == sample::kGarbageCollector) {
      python.collects = true;
      continue;
    }
    const auto& code = codes_[frame.code];
    python.imports = python.imports || code.imports;
    lines.push_back({.function = code.function, .file = code.file, .line = frame.line});
  }
  python.stack = recording_.stacks.number(std::move(lines));
  auto& stacks = stack.traced ? recording_.wakers : recording_.python;
  stacks.push_back(python);
}

void Recorder::on_moment(const bpf::Moment& moment, Event::Kind kind) {
  if (static_cast<int>(moment.pid) == recording_.pid && recording_.events.size() < kMostEvents) {
    recording_.events.push_back(
        {.time = moment.time, .tid = moment.tid, .kind = kind, .waker = moment.waker});
  }
}

void Recorder::on_sample(const RingRecord& record, Event& event) {
  event.kind = record.at_switch ? Event::Kind::kLeaves : Event::Kind::kSample;
  if (event.kind == Event::Kind::kSample && record.user) {
    const auto place = code_.find(record.address);
    event.code = place.kind;
    event.place = place.code;
    return;
  }
  std::vector<std::string_view> functions;
  functions.reserve(record.kernel.size());
  for (const auto address : record.kernel) {
    functions.push_back(symbols_.name(address));
  }
  const auto found = kernel_work(functions);
  event.work = found.use;
  const bool known = found.use != Use::kUnknown;
  if (!functions.empty()) {
    event.place = recording_.names.number(functions[known ? found.function : 0]);
  }
}

// The sample of a switch has the time of another recorder's clock if that one's event was opened
// later (docs/kernel-notes.md). The record of the switch follows it directly. The difference can be
// small: perf's own clock was 1.7 ms behind CLOCK_MONOTONIC three hours after the boot.
void Recorder::correct_leaves(const RingRecord& out) {
  constexpr std::uint64_t kSameClock = 10'000;
  if (!leaves_ || recording_.events[*leaves_].tid != out.tid) {
    return;
  }
  auto& leaves = recording_.events[*std::exchange(leaves_, std::nullopt)];
  if (leaves.time > out.time || out.time - leaves.time > kSameClock) {
    corrected_.insert_or_assign({leaves.tid, leaves.time}, out.time);
    leaves.time = out.time;
  }
}

void Recorder::on_record(const RingRecord& record) {
  using Kind = RingRecord::Kind;
  if (record.kind == Kind::kLost) {
    recording_.lost += record.at_fault ? 0 : record.lost;  // some of many faults are enough
    return;
  }
  constexpr std::uint32_t kHasExited = ~0U;  // its exit has been recorded
  if (static_cast<int>(record.pid) != recording_.pid) {
    users_.add(record);  // its samples are not here: the BPF program drops them
    return;
  }
  if (record.tid == kHasExited) {
    return;
  }
  if (recording_.events.size() + recording_.faults.size() >= kMostEvents) {
    recording_.cut = true;
    return;
  }
  if (record.at_fault) {
    recording_.faults.push_back({.time = record.time, .tid = record.tid});
    return;
  }
  Event event{.time = record.time, .tid = record.tid};
  switch (record.kind) {
    case Kind::kSample:
      on_sample(record, event);
      break;
    case Kind::kIn:
      event.kind = Event::Kind::kIn;
      break;
    case Kind::kOut:
      event.kind = Event::Kind::kOut;
      correct_leaves(record);
      break;
    case Kind::kPreempted:
      event.kind = Event::Kind::kPreempted;
      correct_leaves(record);
      break;
    case Kind::kStart:
      event.kind = Event::Kind::kStart;
      break;
    case Kind::kExit:
      event.kind = Event::Kind::kExit;
      break;
    case Kind::kLost:
      return;
  }
  if (event.kind == Event::Kind::kLeaves) {
    leaves_ = recording_.events.size();
  }
  recording_.events.push_back(event);
}

void Recorder::drain() {
  rings_->read([this](const RingRecord& record) { on_record(record); });
  while (sampler_->consume()) {
  }
}

bool Recorder::step() {
  drain();
  if (next_snapshot_.expired()) {
    const auto begun = steady_clock::now();
    take_snapshot();
    const auto cost = steady_clock::now() - begun;
    next_snapshot_ =
        base::Deadline::after(std::max<nanoseconds>(kBetweenSnapshots, cost * kShareOfSnapshots));
  } else {
    std::this_thread::sleep_for(kStep);
  }
  const bool gone = recording_.exited || recording_.executed;
  recording_.exited = procfs::has_ended(target_.id);
  recording_.executed = procfs::runs_another(target_.id, target_.stack_begin);
  return !gone;
}

std::set<std::uint32_t> Recorder::list_threads() const {
  std::set<std::uint32_t> tids;
  for (const auto tid : procfs::list_tasks(target_.id.pid)) {
    tids.insert(static_cast<std::uint32_t>(tid.value()));
  }
  return tids;
}

void Recorder::add_usage() {
  for (const auto tid : procfs::list_tasks(target_.id.pid)) {
    if (const auto usage = procfs::read_thread_usage(target_.id.pid, tid)) {
      usage_.insert_or_assign(static_cast<std::uint32_t>(tid.value()), *usage);
    }
  }
}

Recording Recorder::finish() {
  take_snapshot();
  recording_.end = now();
  rings_->disable();
  look_at_descendants();
  drain();
  for (auto& stack : recording_.python) {
    const auto corrected = corrected_.find({stack.tid, stack.time});
    stack.time = corrected == corrected_.end() ? stack.time : corrected->second;
  }
  bool loop = !recording_.awaited.empty();
  if (auto process = look()) {
    loop = loop || has_loop(*process);
    look_at_greenlets(std::move(*process));
  }
  if (loop) {
    look_at_connections();
  }
  for (const auto& name : code_.names()) {
    recording_.codes.push_back(recording_.names.number(name));
  }
  recording_.others = users_.times(recording_.end);
  look_at_cpu_limits();
  recording_.lost += sampler_->counters().lost;
  recording_.swapped_kb = procfs::read_swapped(target_.id.pid).value_or(0);
  const auto stat = procfs::read_stat(target_.id.pid);
  recording_.stopped = stat && stat->state == 'T';
  recording_.traced = stat && stat->state == 't';
  recording_.frozen = procfs::read_frozen(target_.id.pid).value_or("");
  const auto machine = procfs::read_machine_usage();
  if (machine && at_begin_.machine && machine->all > at_begin_.machine->all) {
    const auto since = [&](std::uint64_t procfs::MachineUsage::*ticks) {  // may go backwards
      return static_cast<double>((*machine).*ticks) -
             static_cast<double>((*at_begin_.machine).*ticks);
    };
    const auto all = since(&procfs::MachineUsage::all);
    const auto stolen = since(&procfs::MachineUsage::stolen) / all;
    recording_.stolen = std::max(stolen, 0.0);
    recording_.busy_cpus = (1 - stolen - since(&procfs::MachineUsage::idle) / all) *
                           static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  }
  recording_.at_end = list_threads();
  for (const auto& [tid, usage] : usage_) {
    auto& facts = recording_.threads[tid];
    const auto first = at_begin_.threads[tid];
    facts.minor_faults = usage.minor_faults - first.minor_faults;
    facts.major_faults = usage.major_faults - first.major_faults;
    facts.on_cpu = static_cast<std::uint64_t>((usage.on_cpu - first.on_cpu).count());
    facts.for_cpu = static_cast<std::uint64_t>((usage.for_cpu - first.for_cpu).count());
  }
  return std::move(recording_);
}

}  // namespace pyinject::why
