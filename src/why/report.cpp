#include "why/report.hpp"

#include "why/lines.hpp"
#include "why/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace pyinject::why {

namespace {

constexpr std::uint64_t kShortestBlock = 100'000'000;  // nanoseconds
constexpr std::size_t kTop = 3;
constexpr std::size_t kMostHolders = 20;

std::string name_of_group(const Recording& recording, const std::string& name,
                          const std::vector<std::uint32_t>& tids) {
  return tids.size() == 1 ? name_of(recording, tids.front()) : name;
}

// What more is known about a place.
struct Detail {
  std::uint32_t name = 0;
  bool better = false;  // tells more than those that are not
};

// The places in which the threads of a group spend the time of each use.
class Places {
 public:
  void add(Use use, Line line, Detail detail, double time) {
    const bool one = sample::has_detail(use);
    if (one) {
      auto& known = details_[{use, line}][detail.name];
      known = {known.first || detail.better, known.second + time};
    }
    times_[{use, line, one ? 0 : detail.name}] += time;
  }

  [[nodiscard]] std::vector<Spent> top(const Recording& recording, Use use) const {
    std::vector<std::pair<double, Key>> all;
    for (const auto& [key, time] : times_) {
      if (std::get<0>(key) == use) {
        all.emplace_back(time, key);
      }
    }
    const auto count = std::min(all.size(), kTop);
    std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(count),
                              std::ranges::greater{});
    std::vector<Spent> result;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [time, key] = all[i];
      const auto& [its_use, line, its_detail] = key;
      const auto detail = sample::has_detail(use) ? most_of(use, line) : its_detail;
      result.push_back({.function = recording.names.text(line.function),
                        .file = recording.names.text(line.file),
                        .line = line.line,
                        .detail = recording.names.text(detail),
                        .time = static_cast<std::uint64_t>(std::llround(time))});
    }
    return result;
  }

 private:
  using Key = std::tuple<Use, Line, std::uint32_t>;
  // The detail with most of the time of LINE, of the better ones if there are any.
  [[nodiscard]] std::uint32_t most_of(Use use, const Line& line) const {
    return std::ranges::max_element(details_.at({use, line}), {},
                                    [](const auto& each) { return each.second; })
        ->first;
  }

  std::map<Key, double> times_;
  std::map<std::pair<Use, Line>, std::map<std::uint32_t, std::pair<bool, double>>> details_;
};

Detail detail_of(const Wait& wait) {
  switch (wait.use) {
    case Use::kThread:
      return {.name = wait.object};
    case Use::kDisk:
      return wait.awaited != 0 ? Detail{.name = wait.awaited, .better = true}
                               : Detail{.name = wait.place};
    case Use::kNetwork:
    case Use::kChild:
      return {.name = wait.awaited, .better = wait.awaited != 0};
    case Use::kGil:
    case Use::kLock:  // blame_for_locks() has them
    case Use::kPreempted:
    case Use::kClient:
    case Use::kPoll:
    case Use::kPipe:
    case Use::kSleep:  // the kernel function tells nothing more
      return {};
    default:
      return {.name = wait.place};
  }
}

Places places_of(const Recording& recording, const Accounts& accounts,
                 const std::vector<std::uint32_t>& tids) {
  Places places;
  for (const auto tid : tids) {
    for (const auto& sample : of_thread(accounts.samples, tid)) {
      places.add(sample.use, line_of(recording, sample.stack), {.name = sample.place},
                 sample.weight);
    }
    for (const auto& wait : of_thread(accounts.waits, tid)) {
      places.add(wait.use, line_of(recording, wait.stack), detail_of(wait),
                 static_cast<double>(wait.length()));
    }
  }
  return places;
}

Group make_group(const Recording& recording, const Accounts& accounts,
                 const std::vector<std::uint32_t>& tids) {
  Group group{.tids = tids};
  Times times{};
  for (const auto tid : tids) {
    const auto& account = accounts.threads.at(tid);
    group.wall += account.wall;
    for (std::size_t use = 0; use < sample::kUses; ++use) {
      times.at(use) += account.times.at(use);
    }
    if (const auto facts = recording.threads.find(tid); facts != recording.threads.end()) {
      group.major_faults += facts->second.major_faults;
      group.for_cpu += facts->second.for_cpu;
    }
  }
  const auto places = places_of(recording, accounts, tids);
  for (std::size_t i = 0; i < sample::kUses; ++i) {
    const auto use = static_cast<Use>(i);
    if (times.at(i) != 0) {
      group.uses.push_back({.use = use, .time = times.at(i), .top = places.top(recording, use)});
      group.busy += sample::facts(use).idle ? 0 : times.at(i);
    }
  }
  std::ranges::stable_sort(group.uses, std::ranges::greater{}, &UseOfGroup::time);
  return group;
}

// Sums of BLAMES with equal threads and lines.
std::vector<Holder> holders_of(const Recording& recording,
                               const std::map<std::uint32_t, std::string>& groups,
                               const std::vector<Blame>& blames) {
  using HolderKey = std::tuple<std::uint32_t, std::uint32_t, Line, bool, std::string, Line>;
  std::map<HolderKey, std::pair<std::uint64_t, const Blame*>> sums;
  for (const auto& blame : blames) {
    auto& sum =
        sums[{blame.object, blame.holder, line_of(recording, blame.holder_stack), blame.released,
              groups.at(blame.waiter), line_of(recording, blame.waiter_stack)}];
    sum.first += blame.time;
    sum.second = &blame;
  }
  std::vector<Holder> holders;
  for (const auto& [key, sum] : sums) {
    const auto& [time, blame] = sum;
    holders.push_back({.object = recording.names.text(blame->object),
                       .tid = blame->holder,
                       .thread = blame->holder == 0 ? "" : name_of(recording, blame->holder),
                       .held = spent_at(recording, blame->holder_stack, time),
                       .released = blame->released,
                       .waiter = std::get<4>(key),
                       .waited = spent_at(recording, blame->waiter_stack, time),
                       .time = time});
  }
  std::ranges::stable_sort(holders, std::ranges::greater{}, &Holder::time);
  return holders;
}

}  // namespace

std::string short_number(double value) {
  constexpr double kLeast = 0.01;
  constexpr double kWhole = 10;
  return value < kLeast    ? fmt::format("less than {}", kLeast)
         : value >= kWhole ? fmt::format("{:.0f}", value)
                           : fmt::format("{:.2g}", value);
}

Report make_report(Recording& recording, const Accounts& accounts) {
  std::map<std::uint32_t, std::string> groups;  // by tid
  Report report{.pid = recording.pid,
                .command = recording.command,
                .version = recording.version,
                .length = recording.end - recording.begin,
                .descendants = recording.descendants};
  for (const auto& [key, tids] : accounts.groups) {
    report.groups.push_back(make_group(recording, accounts, tids));
    auto& name = report.groups.back().name = name_of_group(recording, key, tids);
    for (const auto tid : tids) {
      groups.emplace(tid, name);
    }
  }
  std::ranges::stable_sort(report.groups, std::ranges::greater{}, &Group::busy);
  report.gil = holders_of(recording, groups, blame_for_gil(accounts));
  report.locks = holders_of(recording, groups, blame_for_locks(recording, accounts));
  for (const auto& [tid, account] : accounts.threads) {
    report.samples += account.samples;
    report.switches += account.switches;
  }
  report.snapshots = recording.snapshots;
  report.lost = recording.lost;
  report.kinds = accounts.kinds;
  report.greenlets = std::move(recording.greenlets);
  report.all_greenlets = recording.all_greenlets;
  judge(recording, accounts, loop_blocks(recording, accounts, kShortestBlock), report);
  for (auto* holders : {&report.gil, &report.locks}) {  // the verdict is about all
    holders->resize(std::min(holders->size(), kMostHolders));
  }
  return report;
}

}  // namespace pyinject::why
