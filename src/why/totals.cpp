#include "why/totals.hpp"

#include "why/phrases.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace pyinject::why {

namespace {

constexpr double kShortage = 0.10;  // of the recording

Totals operator+(Totals one, const Totals& other) {
  std::ranges::transform(one.times, other.times, one.times.begin(), std::plus{});
  one.busy += other.busy;
  return one;
}

// Whether thread TID did nothing but wait for an unnamed local socket, as for the other end of a
// pair: nobody answers there because nobody was asked.
bool waits_for_orders(const Recording& recording, const Accounts& accounts, std::uint32_t tid) {
  const auto waits = of_thread(accounts.waits, tid);
  const auto seen = of_thread(recording.sightings, tid);
  return accounts.threads.at(tid).samples == 0 && waits.size() == 1 &&
         waits.front().use == Use::kNetwork && !seen.empty() &&
         std::ranges::all_of(seen, &Sighting::unnamed);
}

// Such a thread counts only if no other one has work: then it may be the reason.
Totals all_of(const Recording& recording, const Accounts& accounts) {
  Totals totals;
  Totals waiting;
  for (const auto& [tid, account] : accounts.threads) {
    auto& sum = waits_for_orders(recording, accounts, tid) ? waiting : totals;
    for (std::size_t i = 0; i < sample::kUses; ++i) {
      sum.times.at(i) += account.times.at(i);
      sum.busy += sample::kUseFacts.at(i).idle ? 0 : account.times.at(i);
    }
  }
  return share(totals.busy, recording.end - recording.begin) < kOfThreadIdle ? totals + waiting
                                                                             : totals;
}

// Each wakeup takes some microseconds: a little waiting for a CPU is no shortage, and no work.
Totals without_short_delays(Totals totals, std::uint64_t length) {
  auto& delays = totals.times.at(static_cast<std::size_t>(Use::kPreempted));
  if (share(delays, length) < kShortage) {
    totals.busy -= delays;
    delays = 0;
  }
  return totals;
}

}  // namespace

Totals totals_of(const Recording& recording, const Accounts& accounts) {
  return without_short_delays(all_of(recording, accounts), recording.end - recording.begin);
}

bool is_idle(const Totals& totals, std::uint64_t length) {
  return share(totals.busy, length) < kOfThreadIdle;
}

}  // namespace pyinject::why
