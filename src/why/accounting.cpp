#include "why/accounting.hpp"

#include "why/wait_use.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace pyinject::why {

namespace {

// Before Linux 6.3, the BPF program reads the clock some microseconds after the sample did.
constexpr std::uint64_t kClockDifference = 100'000;

template <typename Item>
void sort(std::vector<Item>& items) {
  std::ranges::stable_sort(items, {}, [](const Item& item) {
    return std::pair{item.tid, item.time};
  });
}

class Accountant {
 public:
  Accountant(const Recording& recording, Accounts& accounts)
      : recording_{recording}, uses_{recording}, accounts_{accounts} {}

  void add(std::uint32_t tid);

 private:
  enum class State { kUnknown, kOn, kOff, kGone };

  void on_event(const Event& event);
  void close(std::uint64_t time);
  void add_wait(std::uint64_t end);
  void add_waker(const Event& wakeup);
  void add_sample(const Event& event);
  [[nodiscard]] static Use use_of(const Event& event, const PythonStack* stack);
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> life(std::span<const Event> events) const;
  [[nodiscard]] State state_before(std::span<const Event> events) const;
  [[nodiscard]] const Sighting* sighting_in(std::uint64_t begin, std::uint64_t end) const;

  const Recording& recording_;
  const WaitUses uses_;
  Accounts& accounts_;

  // Of the current thread.
  std::span<const PythonStack> stacks_;
  std::span<const Sighting> sightings_;
  std::uint32_t tid_ = 0;
  ThreadAccount account_;
  State state_ = State::kUnknown;
  std::uint64_t since_ = 0;
  bool preempted_ = false;
  std::optional<Event> leaves_;
};

const Sighting* Accountant::sighting_in(std::uint64_t begin, std::uint64_t end) const {
  const auto first = std::ranges::lower_bound(sightings_, begin, {}, &Sighting::time);
  return first != sightings_.end() && first->time <= end ? &*first : nullptr;
}

void Accountant::add_wait(std::uint64_t end) {
  Wait wait{.tid = tid_, .begin = since_, .end = end};
  const auto* const sighting = sighting_in(since_, end);
  const auto* const stack = leaves_ ? stack_at(stacks_, leaves_->time) : nullptr;
  wait.stack = stack != nullptr ? stack->stack : sighting != nullptr ? sighting->stack : 0;
  wait.gil = stack != nullptr ? stack->gil : sighting != nullptr ? sighting->gil : wait.gil;
  wait.place = leaves_ ? leaves_->place : sighting != nullptr ? sighting->place : 0;
  if (preempted_) {
    wait.use = Use::kPreempted;
  } else {
    const auto found = uses_.of({.work = leaves_ ? leaves_->work : Use::kUnknown,
                                 .gil = wait.gil,
                                 .stack = wait.stack,
                                 .sighting = sighting});
    wait.use = found.use;
    wait.object = found.sighting != nullptr ? found.sighting->object_class : 0;
    wait.awaited = sighting != nullptr ? sighting->awaited : 0;
  }
  account_.times.at(static_cast<std::size_t>(wait.use)) += wait.length();
  accounts_.waits.push_back(wait);
}

void Accountant::add_waker(const Event& wakeup) {
  if (wakeup.waker == 0 || accounts_.waits.empty() || accounts_.waits.back().tid != tid_ ||
      accounts_.waits.back().end != wakeup.time) {
    return;
  }
  auto& wait = accounts_.waits.back();
  wait.waker = wakeup.waker;
  const auto stacks = of_thread(recording_.wakers, wakeup.waker);
  const auto at = std::ranges::lower_bound(stacks, wakeup.time, {}, &PythonStack::time);
  wait.waker_stack = at != stacks.end() && at->time == wakeup.time ? at->stack : 0;
}

// Ends the present state at TIME.
void Accountant::close(std::uint64_t time) {
  if (time <= since_ || state_ == State::kGone) {
    return;
  }
  account_.wall += time - since_;
  if (state_ == State::kOn) {
    account_.on_cpu += time - since_;
  } else if (state_ == State::kOff) {
    add_wait(time);
  } else {
    account_.times.at(static_cast<std::size_t>(Use::kUnknown)) += time - since_;
  }
}

Use Accountant::use_of(const Event& event, const PythonStack* stack) {
  if (event.code == CodeKind::kKernel) {
    const bool fault = event.work == Use::kFault || event.work == Use::kSwap;
    return fault ? event.work : Use::kKernel;
  }
  if (stack != nullptr && (stack->collects || stack->imports)) {
    return stack->collects ? Use::kCollector : Use::kImport;
  }
  const auto does = stack == nullptr ? sample::Does::kUnknown : stack->does;
  return bpf::is_of_c(event.code, does) ? Use::kC : Use::kPython;
}

void Accountant::add_sample(const Event& event) {
  const auto* const stack = stack_at(stacks_, event.time);
  Sample sample{.tid = tid_, .time = event.time, .use = use_of(event, stack)};
  if (event.code == CodeKind::kKernel) {
    sample.place = event.place;
  } else if (sample.use == Use::kC && event.place < recording_.codes.size()) {
    sample.place = recording_.codes[event.place];
  }
  if (stack != nullptr) {
    sample.stack = stack->stack;
    sample.gil = stack->gil;
    sample.kind = stack->kind;
  }
  ++account_.samples;
  accounts_.kinds.add(sample.kind);
  accounts_.samples.push_back(sample);
}

void Accountant::on_event(const Event& event) {
  using Kind = Event::Kind;
  if (state_ == State::kGone && event.kind != Kind::kStart) {
    return;
  }
  switch (event.kind) {
    case Kind::kSample:
      add_sample(event);
      return;
    case Kind::kLeaves:
      leaves_ = event;
      return;
    case Kind::kStart:
      since_ = std::max(recording_.begin, event.time);
      state_ = State::kOff;  // until a CPU takes it
      preempted_ = true;
      leaves_.reset();
      return;
    case Kind::kIn:
      close(event.time);
      state_ = State::kOn;
      leaves_.reset();
      break;
    case Kind::kOut:
    case Kind::kPreempted:
      // Two in a row: what was between them is lost.
      state_ = state_ == State::kOff ? State::kUnknown : state_;
      close(event.time);
      state_ = State::kOff;
      preempted_ = event.kind == Kind::kPreempted;
      ++account_.switches;
      break;
    case Kind::kPoll:
      accounts_.polls.push_back({.tid = tid_, .time = event.time});
      return;
    case Kind::kWakeup:
      if (state_ != State::kOff || preempted_) {
        return;
      }
      close(event.time);
      add_waker(event);
      preempted_ = true;
      break;
    case Kind::kExit:
      close(event.time);
      state_ = State::kGone;  // until another thread gets its tid
      break;
  }
  since_ = std::max(since_, event.time);
}

// The time in which the current thread existed for certain, even if the record of its start or exit
// is missing. Without such a time: the end before the beginning.
std::pair<std::uint64_t, std::uint64_t> Accountant::life(std::span<const Event> events) const {
  auto first = recording_.at_begin.contains(tid_) ? recording_.begin : recording_.end;
  auto last = recording_.at_end.contains(tid_) ? recording_.end : recording_.begin;
  if (!events.empty()) {
    first = std::min(first, events.front().time);
    last = std::max(last, events.back().time);
  }
  if (!sightings_.empty()) {
    first = std::min(first, sightings_.front().time);
    last = std::max(last, sightings_.back().time);
  }
  return {std::max(first, recording_.begin), std::min(last, recording_.end)};
}

// What the first of EVENTS says about the time before it. Without any: a thread that was seen
// blocked was so all the time.
Accountant::State Accountant::state_before(std::span<const Event> events) const {
  using Kind = Event::Kind;
  const auto first =
      std::ranges::find_if(events, [](const Event& event) { return event.kind != Kind::kLeaves; });
  if (first == events.end()) {
    return sightings_.empty() ? State::kUnknown : State::kOff;
  }
  if (first->kind == Kind::kStart) {
    return State::kGone;
  }
  return first->kind == Kind::kIn || first->kind == Kind::kWakeup ? State::kOff : State::kOn;
}

void Accountant::add(std::uint32_t tid) {
  tid_ = tid;
  account_ = {};
  stacks_ = of_thread(recording_.python, tid);
  sightings_ = of_thread(recording_.sightings, tid);
  const auto all = of_thread(recording_.events, tid);
  const std::span<const Event> events{
      all.begin(), std::ranges::upper_bound(all, recording_.end, {}, &Event::time)};
  state_ = state_before(events);
  const auto [begin, end] = life(events);
  since_ = begin;
  preempted_ = false;
  leaves_.reset();
  for (const auto& event : events) {
    on_event(event);
  }
  close(end);
  if (account_.wall != 0) {
    accounts_.threads.emplace(tid, account_);
  }
}

using Counts = std::array<std::uint64_t, sample::kUses>;

// Adds TIME to TIMES by COUNTS, exact in total.
void share_out(std::uint64_t time, const Counts& counts, Times& times) {
  auto left = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (left == 0) {
    times.at(static_cast<std::size_t>(Use::kUnknown)) += time;
    return;
  }
  for (std::size_t use = 0; use < sample::kUses; ++use) {
    if (counts.at(use) != 0) {
      const auto share = static_cast<std::uint64_t>(
          std::llround(static_cast<long double>(time) * static_cast<long double>(counts.at(use)) /
                       static_cast<long double>(left)));
      times.at(use) += share;
      time -= share;
      left -= counts.at(use);
    }
  }
}

// The switches say exactly how long each thread was on a CPU; the samples, where. What threads too
// short for a sample did there, the samples of their group say.
void share_out(const std::vector<std::uint32_t>& group, Accounts& accounts) {
  std::map<std::uint32_t, Counts> counts;
  Counts of_group{};
  for (const auto tid : group) {
    for (const auto& sample : of_thread(accounts.samples, tid)) {
      ++counts[tid].at(static_cast<std::size_t>(sample.use));
      ++of_group.at(static_cast<std::size_t>(sample.use));
    }
  }
  std::uint64_t without = 0;  // on a CPU, of threads without samples
  std::uint64_t samples = 0;
  for (const auto tid : group) {
    auto& account = accounts.threads.at(tid);
    const auto own = counts.find(tid);
    share_out(account.on_cpu, own == counts.end() ? of_group : own->second, account.times);
    without += own == counts.end() ? account.on_cpu : 0;
    samples += account.samples;
  }
  for (const auto& [tid, own] : counts) {
    const auto& account = accounts.threads.at(tid);
    const double weight =
        static_cast<double>(account.on_cpu) / static_cast<double>(account.samples) +
        static_cast<double>(without) / static_cast<double>(samples);
    const auto first = std::ranges::lower_bound(accounts.samples, tid, {}, &Sample::tid);
    for (auto each = first; each != accounts.samples.end() && each->tid == tid; ++each) {
      each->weight = weight;
    }
  }
}

}  // namespace

const PythonStack* stack_at(std::span<const PythonStack> stacks, std::uint64_t time) {
  const auto later = std::ranges::lower_bound(stacks, time, {}, &PythonStack::time);
  if (later != stacks.end() && later->time - time <= kClockDifference) {
    return &*later;
  }
  if (later != stacks.begin() && time - std::prev(later)->time <= kClockDifference) {
    return &*std::prev(later);
  }
  return nullptr;
}

Accounts account(Recording& recording) {
  sort(recording.events);
  sort(recording.python);
  sort(recording.wakers);
  sort(recording.sightings);
  std::set<std::uint32_t> tids;
  for (const auto& [tid, facts] : recording.threads) {
    tids.insert(tid);
  }
  for (const auto& event : recording.events) {
    tids.insert(event.tid);
  }
  for (const auto& sighting : recording.sightings) {
    tids.insert(sighting.tid);
  }
  Accounts accounts;
  Accountant accountant{recording, accounts};
  for (const auto tid : tids) {
    accountant.add(tid);
  }
  std::map<std::uint32_t, std::uint64_t> times;
  for (const auto& [tid, account] : accounts.threads) {
    times.emplace(tid, account.wall);
  }
  accounts.groups = groups_of(recording, times);
  for (const auto& [name, group] : accounts.groups) {
    share_out(group, accounts);
  }
  return accounts;
}

}  // namespace pyinject::why
