#include "python/objects/deadlocks.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace pyinject::python {

std::vector<std::vector<std::size_t>> find_deadlocks(std::span<const Wait> waits) {
  std::map<base::Tid, std::size_t> by_waiter;  // the first wait of each thread
  for (std::size_t i = 0; i < waits.size(); ++i) {
    by_waiter.emplace(waits[i].waiter, i);
  }
  const auto next = [&](std::size_t i) -> std::optional<std::size_t> {
    const auto found = waits[i].owner ? by_waiter.find(*waits[i].owner) : by_waiter.end();
    return found == by_waiter.end() ? std::nullopt : std::optional{found->second};
  };
  // The number of the walk that passed it; each wait is passed once.
  std::vector<std::size_t> passed(waits.size());
  std::vector<std::vector<std::size_t>> cycles;
  std::size_t walk = 0;
  for (const auto& [waiter, start] : by_waiter) {
    ++walk;
    std::optional<std::size_t> at = start;
    while (at && passed[*at] == 0) {
      passed[*at] = walk;
      at = next(*at);
    }
    if (!at || passed[*at] != walk) {
      continue;
    }
    std::vector<std::size_t> cycle;
    const auto first = *at;
    do {
      cycle.push_back(*at);
      at = next(*at);
    } while (*at != first);
    const auto lowest =
        std::ranges::min_element(cycle, {}, [&waits](std::size_t i) { return waits[i].waiter; });
    std::rotate(cycle.begin(), lowest, cycle.end());
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace pyinject::python
