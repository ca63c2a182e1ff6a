#include "process_table.hpp"

#include <utility>

namespace pyinject::watch {

namespace {

ProcessEvent change_of(Change change, base::Pid pid) {
  ProcessEvent event;
  event.change = change;
  event.pid = pid;
  return event;
}

}  // namespace

void ProcessTable::add(base::Pid pid, const Look& look, std::vector<Known>& now,
                       std::vector<ProcessEvent>& events) {
  auto seen = look(pid);
  if (!seen || seen->ended) {
    return;  // known again when it is looked at again, or never
  }
  auto birth = change_of(Change::kForked, pid);
  birth.parent = seen->parent;
  events.push_back(std::move(birth));
  events.push_back(change_of(Change::kAppeared, pid));  // it may have executed something already
  now.push_back({.pid = pid, .seen = std::move(*seen), .age = 0});
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
      continue;  // reported when it is no longer listed
    }
    if (seen->start_time != known.seen.start_time) {
      events.push_back(change_of(Change::kExited, known.pid));
      auto birth = change_of(Change::kForked, known.pid);
      birth.parent = seen->parent;
      events.push_back(std::move(birth));
      events.push_back(change_of(Change::kAppeared, known.pid));
      known.age = 0;
    } else if (seen->ended) {
      events.push_back(change_of(Change::kExited, known.pid));
    } else if (seen->image != known.seen.image) {
      auto exec = change_of(Change::kExec, known.pid);
      exec.path = seen->name;
      events.push_back(std::move(exec));
    } else if (seen->name != known.seen.name) {
      auto named = change_of(Change::kNamed, known.pid);
      named.path = seen->name;
      events.push_back(std::move(named));
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
  look_again(look, events);
  return events;
}

}  // namespace pyinject::watch
