#include "process_table.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::watch {

namespace {

constexpr std::uint64_t kSecond = 100;  // clock ticks, the unit of start times

ProcessEvent change_of(Change change, base::Pid pid) {
  ProcessEvent event;
  event.change = change;
  event.pid = pid;
  return event;
}

}  // namespace

void ProcessTable::add(base::Pid pid, const Look& look, std::vector<Known>& now,
                       std::vector<ProcessEvent>& events) const {
  auto seen = look(pid);
  if (!seen || seen->ended) {
    return;  // a later scan finds it, or it has exited
  }
  auto birth = change_of(Change::kForked, pid);
  birth.parent = seen->parent;
  events.push_back(std::move(birth));
  events.push_back(change_of(Change::kAppeared, pid));  // it may have exec'ed already
  // The first call is about pre-existing processes.
  now.push_back({.pid = pid, .seen = std::move(*seen), .age = 0, .appears_again = turn_ > 0});
}

// Few of the processes at the first call are new.
void ProcessTable::tell_old_from_new() {
  std::uint64_t newest = 0;
  for (const auto& known : known_) {
    newest = std::max(newest, known.seen.start_time);
  }
  for (auto& known : known_) {
    known.age = known.seen.start_time + kSecond < newest ? kRound : 0;
  }
}

void ProcessTable::look_again(const Look& look, std::vector<ProcessEvent>& events) {
  std::size_t young = 0;
  for (auto& known : known_) {
    const bool is_young = known.age > 0 && known.age < kRound && young < kMostYoung;
    young += is_young ? 1 : 0;
    const bool is_its_turn = static_cast<unsigned>(known.pid.value()) % kRound == turn_ % kRound;
    const bool is_new = known.age == 0;
    ++known.age;
    if (is_new || (!is_young && !is_its_turn) || known.seen.ended) {
      continue;
    }
    auto seen = look(known.pid);
    if (!seen) {
      continue;  // reported once it is no longer listed
    }
    if (seen->start_time != known.seen.start_time) {
      events.push_back(change_of(Change::kExited, known.pid));
      auto birth = change_of(Change::kForked, known.pid);
      birth.parent = seen->parent;
      events.push_back(std::move(birth));
      events.push_back(change_of(Change::kAppeared, known.pid));
      known.age = 0;
      known.appears_again = true;
    } else if (seen->ended) {
      events.push_back(change_of(Change::kExited, known.pid));
    } else if (seen->image != known.seen.image) {
      auto exec = change_of(Change::kExec, known.pid);
      exec.path = seen->name;
      events.push_back(std::move(exec));
      events.push_back(change_of(Change::kAppeared, known.pid));
      known.appears_again = true;
    } else {
      if (seen->name != known.seen.name) {
        auto named = change_of(Change::kNamed, known.pid);
        named.path = seen->name;
        events.push_back(std::move(named));
      }
      if (std::exchange(known.appears_again, false)) {
        events.push_back(change_of(Change::kAppeared, known.pid));
      }
    }
    known.seen = std::move(*seen);
  }
  ++turn_;
}

std::vector<ProcessEvent> ProcessTable::update(const std::vector<base::Pid>& present,
                                               const Look& look) {
  std::vector<ProcessEvent> events;
  std::vector<Known> now;
  now.reserve(present.size());
  auto known = known_.begin();
  const auto gone = [&events](const Known& one) {
    if (!one.seen.ended) {
      events.push_back(change_of(Change::kExited, one.pid));
    }
  };
  for (const auto pid : present) {
    for (; known != known_.end() && known->pid < pid; ++known) {
      gone(*known);
    }
    if (known != known_.end() && known->pid == pid) {
      now.push_back(std::move(*known));
      ++known;
    } else {
      add(pid, look, now, events);
    }
  }
  for (; known != known_.end(); ++known) {
    gone(*known);
  }
  known_ = std::move(now);
  if (turn_ == 0) {
    tell_old_from_new();
  }
  look_again(look, events);
  return events;
}

}  // namespace pyinject::watch
