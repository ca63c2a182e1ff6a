#include "why/blame.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace pyinject::why {

namespace {

using Key =
    std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool, std::uint32_t, std::uint32_t>;

class Sum {
 public:
  void add(const Blame& blame) {
    if (blame.time != 0) {
      sums_[{blame.object, blame.holder, blame.holder_stack, blame.released, blame.waiter,
             blame.waiter_stack}] += blame.time;
    }
  }
  [[nodiscard]] std::vector<Blame> sorted() const {
    std::vector<Blame> all;
    for (const auto& [key, time] : sums_) {
      const auto& [object, holder, holder_stack, released, waiter, waiter_stack] = key;
      all.push_back({.object = object,
                     .holder = holder,
                     .holder_stack = holder_stack,
                     .released = released,
                     .waiter = waiter,
                     .waiter_stack = waiter_stack,
                     .time = time});
    }
    std::ranges::stable_sort(all, std::ranges::greater{}, &Blame::time);
    return all;
  }

 private:
  std::map<Key, std::uint64_t> sums_;
};

// One thread with the GIL: at a sample, or while it is off the CPU.
struct Hold {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t tid;
  std::uint32_t stack;
};

struct Holds {
  std::vector<Hold> waits;    // by their ends
  std::vector<Hold> samples;  // by time
};

Holds holds_of(const Accounts& accounts) {
  Holds holds;
  for (const auto& wait : accounts.waits) {
    if (wait.gil == sample::Gil::kHeld && wait.use != Use::kGil) {
      holds.waits.push_back(
          {.begin = wait.begin, .end = wait.end, .tid = wait.tid, .stack = wait.stack});
    }
  }
  for (const auto& sample : accounts.samples) {
    if (sample.gil == sample::Gil::kHeld) {
      holds.samples.push_back(
          {.begin = sample.time, .end = sample.time, .tid = sample.tid, .stack = sample.stack});
    }
  }
  std::ranges::sort(holds.waits, {}, &Hold::end);
  std::ranges::sort(holds.samples, {}, &Hold::begin);
  return holds;
}

void blame_wait(const Wait& wait, const Holds& holds, Sum& sum) {
  Blame blame{.waiter = wait.tid, .waiter_stack = wait.stack};
  auto left = wait.length();
  const auto put = [&](const Hold& hold, std::uint64_t time) {
    blame.holder = hold.tid;
    blame.holder_stack = hold.stack;
    blame.time = std::min(time, left);
    left -= blame.time;
    sum.add(blame);
  };
  // Only one thread at a time holds it, so these do not overlap.
  for (auto at = std::ranges::upper_bound(holds.waits, wait.begin, {}, &Hold::end);
       at != holds.waits.end() && at->begin < wait.end; ++at) {
    if (at->tid != wait.tid) {
      put(*at, std::min(at->end, wait.end) - std::max(at->begin, wait.begin));
    }
  }
  const auto first = std::ranges::lower_bound(holds.samples, wait.begin, {}, &Hold::begin);
  const auto last = std::ranges::upper_bound(holds.samples, wait.end, {}, &Hold::begin);
  auto count = static_cast<std::uint64_t>(
      std::count_if(first, last, [&](const Hold& hold) { return hold.tid != wait.tid; }));
  for (auto at = first; at != last; ++at) {
    if (at->tid != wait.tid) {
      put(*at, left / count--);
    }
  }
  blame.holder = wait.waker;
  blame.holder_stack = wait.waker_stack;
  blame.released = wait.waker != 0;
  blame.time = left;
  sum.add(blame);
}

// Those of locks during WAIT.
std::vector<const Sighting*> sightings_in(const Recording& recording, const Wait& wait) {
  std::vector<const Sighting*> seen;
  const auto all = of_thread(recording.sightings, wait.tid);
  for (auto each = std::ranges::lower_bound(all, wait.begin, {}, &Sighting::time);
       each != all.end() && each->time <= wait.end; ++each) {
    if (each->object == Sighting::Object::kLock) {
      seen.push_back(&*each);
    }
  }
  return seen;
}

void blame_wait_for_lock(const Recording& recording, const Wait& wait, Sum& sum) {
  const auto seen = sightings_in(recording, wait);
  Blame blame{.waiter = wait.tid, .waiter_stack = wait.stack};
  auto left = wait.length();
  const auto owned = static_cast<std::uint64_t>(
      std::ranges::count_if(seen, [](const auto* each) { return each->owner != 0; }));
  for (const auto* const each : seen) {
    blame.object = each->object_name;
    if (each->owner != 0) {
      blame.holder = each->owner;
      blame.holder_stack = each->owner_stack;
      blame.time = wait.length() / owned;
      left -= blame.time;
      sum.add(blame);
    }
  }
  if (owned == 0) {
    blame.holder = wait.waker;
    blame.holder_stack = wait.waker_stack;
    blame.released = wait.waker != 0;
    blame.time = left;
    sum.add(blame);
  }
}

}  // namespace

std::vector<Blame> blame_for_gil(const Accounts& accounts) {
  const auto holds = holds_of(accounts);
  Sum sum;
  for (const auto& wait : accounts.waits) {
    if (wait.use == Use::kGil) {
      blame_wait(wait, holds, sum);
    }
  }
  return sum.sorted();
}

std::vector<Blame> blame_for_locks(const Recording& recording, const Accounts& accounts) {
  Sum sum;
  for (const auto& wait : accounts.waits) {
    if (wait.use == Use::kLock) {
      blame_wait_for_lock(recording, wait, sum);
    }
  }
  return sum.sorted();
}

}  // namespace pyinject::why
