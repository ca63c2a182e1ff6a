#include "report/gil_holders.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

namespace pyinject::report {

namespace {

struct GilStack {
  sample::Gil state = sample::Gil::kNone;
  std::uint32_t row = 0;
};

// A sample of a thread that held the GIL.
struct Held {
  std::uint64_t time = 0;
  std::uint32_t row = 0;
};

class HolderFinder {
 public:
  HolderFinder(const Profile& profile, Selection& selection)
      : profile_{profile}, selection_{selection} {}

  [[nodiscard]] std::map<RowKey, std::vector<Holder>> find();

 private:
  using Shares = std::map<std::uint32_t, std::uint64_t>;  // nanoseconds by the holder's row
  const GilStack& stack_of(const Sample& sample);
  void share_out(const Sample& wait, std::uint32_t row);

  const Profile& profile_;
  Selection& selection_;
  std::unordered_map<std::uint32_t, GilStack> stacks_;
  std::unordered_map<std::uint32_t, std::vector<Held>> held_;  // by pid, in order of time
  std::map<std::uint32_t, Shares> waited_;                     // by the waiter's row
};

const GilStack& HolderFinder::stack_of(const Sample& sample) {
  const auto [entry, fresh] = stacks_.try_emplace(sample.stack);
  if (fresh) {
    const auto facts = selection_.facts_of(sample.stack);
    if (facts.admitted && facts.self && !facts.marks.gil.empty()) {
      entry->second = {
          .state = facts.marks.gil == "held" ? sample::Gil::kHeld : sample::Gil::kWaitedFor,
          .row = *facts.self};
    }
  }
  return entry->second;
}

// Long waits have many samples: of more than that, every n-th one stands for the others.
void HolderFinder::share_out(const Sample& wait, std::uint32_t row) {
  constexpr std::size_t kMostLookedAt = 1000;
  const auto& all = held_[profile_.threads[wait.thread].pid];
  const auto begin = std::ranges::lower_bound(all, wait.time, {}, &Held::time);
  const auto end = std::ranges::upper_bound(all, wait.time + wait.period, {}, &Held::time);
  const auto count = static_cast<std::size_t>(end - begin);
  const auto step = count / kMostLookedAt + 1;
  const auto looked_at = (count + step - 1) / step;
  for (std::size_t i = 0; i < count; i += step) {
    waited_[row][begin[static_cast<std::ptrdiff_t>(i)].row] += wait.period / looked_at;
  }
}

std::map<RowKey, std::vector<Holder>> HolderFinder::find() {
  std::vector<std::pair<const Sample*, std::uint32_t>> waits;
  for (const auto& sample : profile_.samples) {
    if (!selection_.admits(sample)) {
      continue;
    }
    const auto& stack = stack_of(sample);
    const bool wait = profile_.events[sample.event].unit == Unit::kWaits;
    if (wait && stack.state == sample::Gil::kWaitedFor) {
      waits.emplace_back(&sample, stack.row);
    } else if (!wait && stack.state == sample::Gil::kHeld) {
      held_[profile_.threads[sample.thread].pid].push_back({.time = sample.time, .row = stack.row});
    }
  }
  for (const auto& [sample, row] : waits) {
    share_out(*sample, row);
  }
  std::map<RowKey, std::vector<Holder>> result;
  for (const auto& [row, shares] : waited_) {
    auto& holders = result[selection_.key(row)];
    for (const auto& [holder, waited] : shares) {
      const auto& key = selection_.key(holder);
      holders.push_back({.name = key.name, .file = key.file, .waited = waited});
    }
    std::ranges::stable_sort(holders, std::ranges::greater{}, &Holder::waited);
  }
  return result;
}

}  // namespace

std::map<RowKey, std::vector<Holder>> gil_holders(const Profile& profile, Selection& selection) {
  return HolderFinder{profile, selection}.find();
}

}  // namespace pyinject::report
