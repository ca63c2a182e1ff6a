#include "live/live_sampler.hpp"

#include "base/clock.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/examine_all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include <unistd.h>

namespace pyinject::live {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// An interpreter is loaded some time after the start of its process.
constexpr int kRetries = 5;
// look() takes at most one part in this many of a processor.
constexpr int kMostCost = 500;

base::ProcessId id_of(const procfs::Stat& stat) {
  return {.pid = stat.pid, .start_time = stat.start_time};
}

// A first thread that has exited before the others is a zombie, too.
bool is_dead(const procfs::Stat& stat) { return stat.state == 'Z' && stat.threads <= 1; }

bool may_pass(python::Reason reason) {
  return reason == python::Reason::kNotInitialized || reason == python::Reason::kNotPython ||
         reason == python::Reason::kExited || reason == python::Reason::kNotExamined;
}

}  // namespace

LiveSampler::LiveSampler(const SamplerOptions& options)
    : options_{options}, profile_{options.period}, waits_{[this](sample::Code code) {
        on_code(std::move(code));
      }} {
  if (options.keep) {
    kept_.emplace(options.period);
  }
}

std::variant<std::unique_ptr<LiveSampler>, std::string> LiveSampler::start(
    const SamplerOptions& options) {
  std::unique_ptr<LiveSampler> self{new LiveSampler{options}};
  auto* const sampler = self.get();
  const SourceOptions how{.period = options.period, .gil = options.gil, .tasks = options.tasks};
  const StackReceiver receiver{
      .code = [sampler](sample::Code code) { sampler->on_code(std::move(code)); },
      .stack = [sampler](const sample::Stack& stack, std::uint64_t count,
                         bool in_greenlet) { sampler->on_stack(stack, count, in_greenlet); }};
  auto made = make_bpf_source(how, receiver);
  if (auto* const why = std::get_if<std::string>(&made)) {
    self->no_bpf_ = std::move(*why);
    self->source_ = make_reading_source(how, receiver);
  } else {
    self->source_ = std::get<std::unique_ptr<StackSource>>(std::move(made));
  }
  self->look();
  if (auto why = self->source_->begin()) {
    return std::move(*why);
  }
  self->began_ = std::chrono::steady_clock::now();
  self->collect();  // what waits from the start
  return self;
}

LiveSampler::Stats LiveSampler::candidates() const {
  Stats all;
  const bool by_pid = !options_.pids.empty();
  for (const auto pid : by_pid && !options_.children ? options_.pids : procfs::list_processes()) {
    auto stat = procfs::read_stat(pid);
    if (stat && !is_dead(*stat) && !stat->kernel_thread()) {
      all.emplace(pid, std::move(*stat));
    }
  }
  Stats chosen;
  if (!by_pid) {
    const bool narrow = options_.scope.narrow();
    std::erase_if(all, [&](const auto& each) {
      return each.first.value() == ::getpid() ||
             (narrow && !targets::is_in(options_.scope, each.first));
    });
    return all;
  }
  for (const auto pid : options_.pids) {
    const auto found = all.find(pid);
    const auto named = named_.find(pid);
    if (found != all.end() && (named == named_.end() || named->second == id_of(found->second))) {
      chosen.insert(*found);
    }
  }
  if (options_.children) {
    add_descendants(all, chosen);
  }
  return chosen;
}

// Also those that have lost their parents since the latest look().
void LiveSampler::add_descendants(const Stats& all, Stats& chosen) const {
  for (const auto& [pid, known] : known_) {
    const auto found = all.find(pid);
    if (found != all.end() && known.id == id_of(found->second)) {
      chosen.insert(*found);
    }
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& each : all) {
      more |= chosen.contains(each.second.parent) && chosen.insert(each).second;
    }
  }
}

nanoseconds LiveSampler::look() {
  const auto begin = base::time_by(CLOCK_PROCESS_CPUTIME_ID);
  const auto all = candidates();
  std::vector<base::Pid> fresh;
  std::map<base::Pid, Known> present;
  for (const auto& [pid, stat] : all) {
    const auto id = id_of(stat);
    const auto known = known_.find(pid);
    const bool same = known != known_.end() && known->second.id == id &&
                      known->second.stack_begin == stat.stack_begin;
    auto& entry = present[pid];
    if (same) {
      entry = known->second;
      if (entry.refused && entry.retries > 0) {
        --entry.retries;
        fresh.push_back(pid);
      }
    } else {
      const bool settled = !looked_ && options_.pids.empty();
      entry = {.id = id, .stack_begin = stat.stack_begin, .retries = settled ? 1 : kRetries};
      fresh.push_back(pid);
      names_.forget(pid);
    }
  }
  for (const auto& [pid, known] : known_) {
    if (!present.contains(pid)) {
      source_->remove(pid);
      forget(pid);
      names_.forget(pid);
    }
  }
  if (!looked_) {
    for (const auto pid : options_.pids) {
      const auto found = present.find(pid);
      named_[pid] = found == present.end() ? base::ProcessId{} : found->second.id;
    }
  }
  known_ = std::move(present);
  wanted_.clear();
  examine(fresh);
  if (!looked_) {
    for (const auto& [pid, id] : named_) {
      if (id == base::ProcessId{}) {
        refusals_.push_back(
            fmt::format("pid {}: there is no such process (no_such_process)", pid.value()));
      }
    }
  }
  looked_ = true;
  names_.read_again();
  if (options_.tasks) {
    source_->look_for_modules();
  }
  return std::max<nanoseconds>(seconds{1},
                               kMostCost * (base::time_by(CLOCK_PROCESS_CPUTIME_ID) - begin));
}

void LiveSampler::examine(const std::vector<base::Pid>& pids) {
  const bool named = !options_.pids.empty();
  refusals_.clear();
  const auto examined =
      targets::examine_all(*detector_, pids, base::Cancellation::never(),
                           named && !looked_ ? targets::kPatienceNamed : targets::kPatienceUnnamed);
  for (std::size_t i = 0; i < pids.size(); ++i) {
    auto& known = known_[pids[i]];
    const auto& detection = examined[i].detection;
    known.refused = !add(pids[i], detection);
    if (known.refused) {
      source_->remove(pids[i]);  // it has been sampled before its exec
      forget(pids[i]);
    }
    const auto* const refused = std::get_if<python::Refused>(&detection);
    if (refused == nullptr || !may_pass(refused->refusal.reason)) {
      known.retries = 0;
    }
  }
  refused_ = static_cast<std::size_t>(
      std::ranges::count_if(known_, [](const auto& each) { return each.second.refused; }));
}

bool LiveSampler::add(base::Pid pid, const python::Detection& detection) {
  const auto refuse = [&](const std::string& why) {
    if (!options_.pids.empty()) {
      refusals_.push_back(fmt::format("pid {}: {}", pid.value(), base::printable(why)));
    }
    return false;
  };
  if (const auto* const refused = std::get_if<python::Refused>(&detection)) {
    return refuse(python::describe(refused->refusal));
  }
  const auto& target = std::get<python::Target>(detection);
  if (const auto why = source_->add(target)) {
    return refuse(*why);
  }
  forget(pid);  // its program before an exec
  waits_.add(target);
  uses_.add(target);
  names_.add(target);
  profile_.note_gil(target.has_gil);
  return true;
}

// The sampler also reads the children that processes fork.
bool LiveSampler::wants(base::Pid pid) {
  if (known_.contains(pid) || options_.children) {
    return true;
  }
  if (!options_.pids.empty() || !options_.scope.narrow()) {
    return options_.pids.empty();
  }
  const auto found = wanted_.find(pid);
  return found != wanted_.end()
             ? found->second
             : wanted_.emplace(pid, targets::is_in(options_.scope, pid)).first->second;
}

void LiveSampler::forget(base::Pid pid) {
  waits_.remove(pid);
  names_.remove(pid);
  uses_.remove(pid);
}

void LiveSampler::on_code(sample::Code code) {
  uses_.note(code);
  if (kept_) {
    kept_->name(code);
  }
  profile_.name(std::move(code));
}

void LiveSampler::on_stack(const sample::Stack& stack, std::uint64_t count, bool in_greenlet) {
  const base::Pid pid{static_cast<pid_t>(stack.pid)};
  if (wants(pid)) {
    names_.name(stack);
    const auto [use, c_function] = no_bpf_.empty() ? uses_.of(stack) : UseJudge::Found{};
    profile_.add(stack, count, use, in_greenlet, c_function);
    if (kept_) {
      kept_->add(stack, count, use, in_greenlet,
                 stack.time != 0 ? stack.time : base::now_by(CLOCK_MONOTONIC));
    }
  }
}

void LiveSampler::on_wait(const sample::Stack& stack, Use use, nanoseconds length) {
  names_.name(stack);
  profile_.add_wait(stack, use, length);
  if (kept_) {
    kept_->add_wait(stack, length, base::now_by(CLOCK_MONOTONIC));
  }
}

report::Profile LiveSampler::kept() {
  auto profile = std::move(*kept_).finish(
      [this](std::uint32_t pid, std::uint32_t tid) {
        return KeptSamples::Names{profile_.names().thread(pid, tid), profile_.names().process(pid)};
      },
      lost());
  profile.engine = no_bpf_.empty() ? "BPF" : "";
  return profile;
}

void LiveSampler::collect() {
  source_->collect();
  waits_.collect([this](const auto&... wait) { on_wait(wait...); });
}

void LiveSampler::end_interval(nanoseconds length) {
  collect();
  waits_.end_interval([this](const auto&... wait) { on_wait(wait...); });
  profile_.end_interval(length);
}

}  // namespace pyinject::live
